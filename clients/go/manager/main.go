// Command manager checks a server with a typical controller: a manager of controller-runtime with leader election
// and a cache, a reconciler of a custom kind that owns a built-in one, server-side apply, a status, a finalizer, and mutating
// and validating webhooks for the kind.
//
// It fails with a message, or prints the observed state.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
)

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("a manager of a custom kind: ok")
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	crds := envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{shipCRD()}}
	if _, err := envtest.InstallCRDs(config, crds); err != nil {
		return fmt.Errorf("install the CRD: %w", err)
	}
	hooks := webhooks()
	if err := hooks.PrepWithoutInstalling(); err != nil {
		return fmt.Errorf("prepare the webhooks: %w", err)
	}
	manager, err := newManager(config, &hooks)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	checked := serveWebhooks(ctx, manager, &hooks)
	if checked == nil {
		checked = errors.Join(ruled(ctx, manager), check(ctx, manager))
	}
	stop()
	return errors.Join(checked, <-ended, hooks.Cleanup())
}

// serveWebhooks waits until the manager's webhook server listens, then creates the webhook configurations.
func serveWebhooks(ctx context.Context, manager ctrl.Manager, hooks *envtest.WebhookInstallOptions) error {
	started := manager.GetWebhookServer().StartedChecker()
	if err := eventually(ctx, func() (bool, error) { return started(nil) == nil, nil }); err != nil {
		return fmt.Errorf("start the server of webhooks: %w", err)
	}
	return hooks.Install(manager.GetConfig())
}

func newManager(config *rest.Config, hooks *envtest.WebhookInstallOptions) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	register(scheme)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: metricsserver.Options{BindAddress: "0"},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: hooks.LocalServingHost, Port: hooks.LocalServingPort, CertDir: hooks.LocalServingCertDir,
		}),
		LeaderElection:                true,
		LeaderElectionID:              "harbour",
		LeaderElectionNamespace:       "default",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, fmt.Errorf("make the manager: %w", err)
	}
	if err := ctrl.NewWebhookManagedBy(manager, &Ship{}).WithDefaulter(Rules{}).WithValidator(Rules{}).Complete(); err != nil {
		return nil, fmt.Errorf("make the webhooks: %w", err)
	}
	harbour := &Harbour{Client: manager.GetClient()}
	return manager, ctrl.NewControllerManagedBy(manager).For(&Ship{}).Owns(&corev1.ConfigMap{}).Complete(harbour)
}

// check creates and changes ships like a user, and waits for the reconciler's result.
func check(ctx context.Context, manager ctrl.Manager) error {
	direct, err := client.New(manager.GetConfig(), client.Options{Scheme: manager.GetScheme()})
	if err != nil {
		return err
	}
	ship := &Ship{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "beagle"}, Spec: ShipSpec{Masts: 3}}
	key := client.ObjectKeyFromObject(ship)
	if err := direct.Create(ctx, ship); err != nil {
		return fmt.Errorf("create a ship: %w", err)
	}
	if ship.Spec.Rig != "square" {
		return fmt.Errorf("the default was not filled in: %+v", ship.Spec)
	}
	if err := logged(ctx, direct, key, "3 masts, square"); err != nil {
		return err
	}
	if err := update(ctx, direct, key, func(ship *Ship) { ship.Spec.Masts = 8 }); !apierrors.IsInvalid(err) {
		return fmt.Errorf("a ship with 8 masts should be invalid: %v", err)
	}
	if err := update(ctx, direct, key, func(ship *Ship) { ship.Spec.Rig = "gaff" }); err != nil {
		return fmt.Errorf("change the rig: %w", err)
	}
	if err := logged(ctx, direct, key, "3 masts, gaff"); err != nil {
		return err
	}
	var selected ShipList
	if err := direct.List(ctx, &selected, client.MatchingFields{"spec.rig": "gaff"}); err != nil || len(selected.Items) != 1 {
		return fmt.Errorf("select by the rig: %v %v", selected.Items, err)
	}
	return removed(ctx, manager, direct, key)
}

// logged waits until the reconciler has written the log of a ship, and seen its last generation.
func logged(ctx context.Context, reader client.Reader, key client.ObjectKey, wanted string) error {
	var ship Ship
	err := eventually(ctx, func() (bool, error) {
		var log corev1.ConfigMap
		if err := reader.Get(ctx, key, &log); client.IgnoreNotFound(err) != nil {
			return false, err
		}
		if err := reader.Get(ctx, key, &ship); err != nil {
			return false, err
		}
		return log.Data["log"] == wanted && ship.Status.Log == wanted && ship.Status.ObservedGeneration == ship.Generation, nil
	})
	if err != nil {
		return fmt.Errorf("waited for the log %q, last seen %+v: %w", wanted, ship, err)
	}
	return nil
}

// removed deletes the log, which the reconciler restores, then the ship: its finalizer deletes the log, and the cache sees both deletions.
func removed(ctx context.Context, manager ctrl.Manager, direct client.Client, key client.ObjectKey) error {
	log := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := direct.Delete(ctx, log); err != nil {
		return fmt.Errorf("delete the log: %w", err)
	}
	if err := logged(ctx, direct, key, "3 masts, gaff"); err != nil {
		return fmt.Errorf("a deleted log comes again: %w", err)
	}
	if err := direct.Delete(ctx, &Ship{ObjectMeta: log.ObjectMeta}); err != nil {
		return fmt.Errorf("delete the ship: %w", err)
	}
	return eventually(ctx, func() (bool, error) {
		cached := manager.GetClient()
		ship, log := cached.Get(ctx, key, &Ship{}), cached.Get(ctx, key, &corev1.ConfigMap{})
		return apierrors.IsNotFound(ship) && apierrors.IsNotFound(log), nil
	})
}

func update(ctx context.Context, direct client.Client, key client.ObjectKey, change func(*Ship)) error {
	for {
		var ship Ship
		if err := direct.Get(ctx, key, &ship); err != nil {
			return err
		}
		change(&ship)
		if err := direct.Update(ctx, &ship); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func eventually(ctx context.Context, holds func() (bool, error)) error {
	condition := func(context.Context) (bool, error) { return holds() }
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, condition)
}
