package main

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var groupVersion = schema.GroupVersion{Group: "sea.example.com", Version: "v1"}

// Ship is the kind that the manager reconciles.
type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ShipSpec   `json:"spec,omitempty"`
	Status            ShipStatus `json:"status,omitempty"`
}

// ShipSpec is the desired state of a ship.
type ShipSpec struct {
	Masts int32  `json:"masts"`
	Rig   string `json:"rig,omitempty"`
}

// ShipStatus is the observed state of a ship.
type ShipStatus struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	Log                string `json:"log,omitempty"`
}

// ShipList is a list of ships.
type ShipList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Ship `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (ship *Ship) DeepCopyObject() runtime.Object {
	copied := *ship
	ship.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	return &copied
}

// DeepCopyObject implements runtime.Object.
func (list *ShipList) DeepCopyObject() runtime.Object {
	copied := *list
	list.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Ship, len(list.Items))
	for i := range list.Items {
		copied.Items[i] = *list.Items[i].DeepCopyObject().(*Ship)
	}
	return &copied
}

func register(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &Ship{}, &ShipList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}

// shipCRD is the CRD of ships: it has a default, a rule, a status, and a selectable field.
func shipCRD() *apiextensionsv1.CustomResourceDefinition {
	type props = apiextensionsv1.JSONSchemaProps
	spec := props{
		Type: "object", Required: []string{"masts"},
		Properties: map[string]props{
			"masts": {Type: "integer", Format: "int32"},
			"rig":   {Type: "string", Default: &apiextensionsv1.JSON{Raw: []byte(`"square"`)}},
		},
		XValidations: apiextensionsv1.ValidationRules{{Rule: "self.masts <= 7", Message: "too many masts"}},
	}
	status := props{Type: "object", Properties: map[string]props{
		"observedGeneration": {Type: "integer", Format: "int64"}, "log": {Type: "string"},
	}}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "ships.sea.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: groupVersion.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "ships", Kind: "Ship", ListKind: "ShipList", Singular: "ship"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: groupVersion.Version, Served: true, Storage: true,
				Subresources:     &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				SelectableFields: []apiextensionsv1.SelectableField{{JSONPath: ".spec.rig"}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &props{
					Type: "object", Properties: map[string]props{"spec": spec, "status": status},
				}},
			}},
		},
	}
}
