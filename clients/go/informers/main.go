// Command informers checks a server with the parts of a controller: typed clients and shared informers, over protobuf.
//
// It fails with a message, or prints the received events.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

const protobuf = "application/vnd.kubernetes.protobuf"

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("informers over protobuf: ok")
}

func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.ContentType, config.AcceptContentTypes = protobuf, protobuf
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "informers"}}
	if _, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create namespace: %w", err)
	}
	if err := accountIsThere(ctx, client); err != nil {
		return fmt.Errorf("the service account of the namespace never came: %w", err)
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("informers"))
	events := make(chan string, 100)
	pods := factory.Core().V1().Pods()
	deployments := factory.Apps().V1().Deployments()
	pods.Informer().AddEventHandler(tell(events, "pod"))
	deployments.Informer().AddEventHandler(tell(events, "deployment"))
	factory.Start(ctx.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return fmt.Errorf("the cache of %v never filled", kind)
		}
	}
	made, err := client.CoreV1().Pods("informers").Create(ctx, pod(), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create pod: %w", err)
	}
	if err := expect(ctx, events, "add pod a"); err != nil {
		return err
	}
	read, err := pods.Lister().Pods("informers").Get("a")
	if err != nil {
		return err
	}
	if !equality.Semantic.DeepEqual(made, read) {
		return fmt.Errorf("the informer has another pod than the create gave:\n%v\n%v", made, read)
	}
	if err := update(ctx, client); err != nil {
		return fmt.Errorf("update pod: %w", err)
	}
	if err := expect(ctx, events, "update pod a"); err != nil {
		return err
	}
	if _, err := client.AppsV1().Deployments("informers").Create(ctx, deployment(), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create deployment: %w", err)
	}
	if err := expect(ctx, events, "add deployment web"); err != nil {
		return err
	}
	zero := int64(0)
	if err := client.CoreV1().Pods("informers").Delete(ctx, "a", metav1.DeleteOptions{GracePeriodSeconds: &zero}); err != nil {
		return fmt.Errorf("delete pod: %w", err)
	}
	if err := expect(ctx, events, "delete pod a"); err != nil {
		return err
	}
	left, err := pods.Lister().List(labels.Everything())
	if err != nil || len(left) != 0 {
		return fmt.Errorf("pods are left: %v %v", left, err)
	}
	return nil
}

// accountIsThere waits for the service account that every Pod needs and that a controller creates in a new namespace. The server waits for it, too, but not for long.
func accountIsThere(ctx context.Context, client kubernetes.Interface) error {
	return wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().ServiceAccounts("informers").Get(ctx, "default", metav1.GetOptions{})
		return err == nil, nil
	})
}

func tell(events chan<- string, kind string) cache.ResourceEventHandlerFuncs {
	name := func(object any) string {
		if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		return object.(metav1.Object).GetName()
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { events <- "add " + kind + " " + name(object) },
		UpdateFunc: func(_, object any) { events <- "update " + kind + " " + name(object) },
		DeleteFunc: func(object any) { events <- "delete " + kind + " " + name(object) },
	}
}

// expect waits for an event; other events may come before it.
func expect(ctx context.Context, events <-chan string, wanted string) error {
	for {
		select {
		case event := <-events:
			if event == wanted {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %q", wanted)
		}
	}
}

func update(ctx context.Context, client kubernetes.Interface) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pod, err := client.CoreV1().Pods("informers").Get(ctx, "a", metav1.GetOptions{})
		if err != nil {
			return err
		}
		pod.Labels["updated"] = "true"
		_, err = client.CoreV1().Pods("informers").Update(ctx, pod, metav1.UpdateOptions{})
		return err
	})
}

func pod() *corev1.Pod {
	limits := corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("64Mi")}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"app": "a"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "c", Image: "nginx", Resources: corev1.ResourceRequirements{Limits: limits},
			Ports: []corev1.ContainerPort{{ContainerPort: 80}},
		}}},
	}
}

func deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "nginx"}}},
			},
		},
	}
}
