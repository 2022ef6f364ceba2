package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	applycore "k8s.io/client-go/applyconfigurations/core/v1"
	applymeta "k8s.io/client-go/applyconfigurations/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const finalizer = "sea.example.com/log"

// Harbour keeps a log, which is a ConfigMap, for each ship.
type Harbour struct {
	client.Client
}

// Reconcile writes the state of the ship into its log, or deletes the log with the ship.
func (harbour *Harbour) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var ship Ship
	if err := harbour.Get(ctx, request.NamespacedName, &ship); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !ship.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, harbour.finalize(ctx, &ship)
	}
	if controllerutil.AddFinalizer(&ship, finalizer) {
		return ctrl.Result{}, harbour.Update(ctx, &ship)
	}
	text := fmt.Sprintf("%d masts, %s", ship.Spec.Masts, ship.Spec.Rig)
	owner := applymeta.OwnerReference().WithAPIVersion(groupVersion.String()).WithKind("Ship").
		WithName(ship.Name).WithUID(ship.UID).WithController(true)
	log := applycore.ConfigMap(ship.Name, ship.Namespace).WithOwnerReferences(owner).WithData(map[string]string{"log": text})
	if err := harbour.Apply(ctx, log, client.FieldOwner("harbour"), client.ForceOwnership); err != nil {
		return ctrl.Result{}, fmt.Errorf("apply the log: %w", err)
	}
	if ship.Status.Log == text && ship.Status.ObservedGeneration == ship.Generation {
		return ctrl.Result{}, nil
	}
	ship.Status = ShipStatus{Log: text, ObservedGeneration: ship.Generation}
	return ctrl.Result{}, harbour.Status().Update(ctx, &ship)
}

func (harbour *Harbour) finalize(ctx context.Context, ship *Ship) error {
	log := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ship.Namespace, Name: ship.Name}}
	if err := harbour.Delete(ctx, log); client.IgnoreNotFound(err) != nil {
		return err
	}
	if controllerutil.RemoveFinalizer(ship, finalizer) {
		return client.IgnoreNotFound(harbour.Update(ctx, ship))
	}
	return nil
}
