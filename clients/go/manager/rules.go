package main

import (
	"context"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	flag     = "sea.example.com/flag"
	anchored = "sea.example.com/anchored"
)

// Rules are the manager's webhooks for ships.
type Rules struct{}

// Default sets the flag of every ship.
func (Rules) Default(_ context.Context, ship *Ship) error {
	if ship.Labels[flag] == "" {
		metav1.SetMetaDataLabel(&ship.ObjectMeta, flag, "white")
	}
	return nil
}

// ValidateCreate refuses a name, and warns of ships without masts.
func (Rules) ValidateCreate(_ context.Context, ship *Ship) (admission.Warnings, error) {
	if ship.Name == "dutchman" {
		return nil, fmt.Errorf("no harbour takes the %s", ship.Name)
	}
	if ship.Spec.Masts == 0 {
		return admission.Warnings{"a ship without masts goes nowhere"}, nil
	}
	return nil, nil
}

// ValidateUpdate refuses another flag.
func (Rules) ValidateUpdate(_ context.Context, old, ship *Ship) (admission.Warnings, error) {
	if old.Labels[flag] != ship.Labels[flag] {
		return nil, fmt.Errorf("the flag stays %s", old.Labels[flag])
	}
	return nil, nil
}

// ValidateDelete refuses the deletion of a ship at anchor.
func (Rules) ValidateDelete(_ context.Context, ship *Ship) (admission.Warnings, error) {
	if ship.Annotations[anchored] != "" {
		return nil, fmt.Errorf("the ship is anchored")
	}
	return nil, nil
}

// webhooks are the configurations that send ships to the manager.
func webhooks() envtest.WebhookInstallOptions {
	path := func(prefix string) admissionv1.WebhookClientConfig {
		path := prefix + "-" + strings.ReplaceAll(groupVersion.Group, ".", "-") + "-v1-ship"
		return admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Path: &path}}
	}
	none := admissionv1.SideEffectClassNone
	rules := func(operations ...admissionv1.OperationType) []admissionv1.RuleWithOperations {
		return []admissionv1.RuleWithOperations{{Operations: operations, Rule: admissionv1.Rule{
			APIGroups: []string{groupVersion.Group}, APIVersions: []string{"v1"}, Resources: []string{"ships"},
		}}}
	}
	name := metav1.ObjectMeta{Name: "ships"}
	return envtest.WebhookInstallOptions{
		MutatingWebhooks: []*admissionv1.MutatingWebhookConfiguration{{ObjectMeta: name, Webhooks: []admissionv1.MutatingWebhook{{
			Name: "default.sea.example.com", ClientConfig: path("/mutate"), SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			Rules: rules(admissionv1.Create, admissionv1.Update),
		}}}},
		ValidatingWebhooks: []*admissionv1.ValidatingWebhookConfiguration{{ObjectMeta: name, Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "validate.sea.example.com", ClientConfig: path("/validate"), SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			Rules: rules(admissionv1.Create, admissionv1.Update, admissionv1.Delete),
		}}}},
	}
}

// warnings are the last ones that the server sent.
type warnings struct{ seen []string }

func (handler *warnings) HandleWarningHeader(_ int, _ string, text string) {
	handler.seen = append(handler.seen, text)
}

// ruled makes requests that the webhooks refuse, warn about and mutate.
func ruled(ctx context.Context, manager ctrl.Manager) error {
	heard := &warnings{}
	config := rest.CopyConfig(manager.GetConfig())
	config.WarningHandler = heard
	direct, err := client.New(config, client.Options{Scheme: manager.GetScheme()})
	if err != nil {
		return err
	}
	dutchman := &Ship{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "dutchman"}}
	err = direct.Create(ctx, dutchman)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `admission webhook "validate.sea.example.com" denied the request: no harbour takes the dutchman`) {
		return fmt.Errorf("the webhook should have refused the ship: %v", err)
	}
	raft := &Ship{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "raft", Annotations: map[string]string{anchored: "yes"}}}
	key := client.ObjectKeyFromObject(raft)
	if err := direct.Create(ctx, raft); err != nil {
		return fmt.Errorf("create a raft: %w", err)
	}
	if raft.Labels[flag] != "white" || len(heard.seen) != 1 || heard.seen[0] != "a ship without masts goes nowhere" {
		return fmt.Errorf("the webhooks should have given a flag and a warning: %v %v", raft.Labels, heard.seen)
	}
	if err := update(ctx, direct, key, func(ship *Ship) { ship.Labels[flag] = "black" }); !apierrors.IsForbidden(err) {
		return fmt.Errorf("the webhook should have kept the flag: %v", err)
	}
	if err := direct.Delete(ctx, raft); !apierrors.IsForbidden(err) {
		return fmt.Errorf("the webhook should have kept the raft: %v", err)
	}
	if err := update(ctx, direct, key, func(ship *Ship) { ship.Annotations = nil }); err != nil {
		return fmt.Errorf("lift the anchor: %w", err)
	}
	return direct.Delete(ctx, raft)
}
