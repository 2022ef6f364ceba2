"""A session with the Python client: typed objects, pages, watches, custom resources. An unexpected answer ends it with an error."""

import threading

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.exceptions import ApiException

SPACE = "python"

DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "lamps.python.example.com"},
    "spec": {
        "group": "python.example.com",
        "names": {"kind": "Lamp", "plural": "lamps"},
        "scope": "Namespaced",
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {
                        "type": "object",
                        "properties": {"watts": {"type": "integer", "maximum": 100}},
                    },
                    "status": {"type": "object", "properties": {"lit": {"type": "boolean"}}},
                },
            }},
        }],
    },
}


def refused(code, call, *arguments, **options):
    """The exception of a call that must be refused with this code."""
    try:
        call(*arguments, **options)
    except ApiException as error:
        assert error.status == code, f"{error.status}, not {code}: {error.body}"
        return error
    raise AssertionError(f"{call} was not refused")


def typed_objects(core):
    """Typed objects: created, read, updated in three ways, listed by label, deleted."""
    body = client.V1ConfigMap(
        metadata=client.V1ObjectMeta(name="a", labels={"app": "a"}), data={"k": "1"})
    made = core.create_namespaced_config_map(SPACE, body)
    assert made.metadata.uid and made.metadata.creation_timestamp.tzinfo
    error = refused(409, core.create_namespaced_config_map, SPACE, body)
    assert "AlreadyExists" in error.body
    changed = core.patch_namespaced_config_map("a", SPACE, {"data": {"k": "2"}})
    assert changed.data == {"k": "2"}
    patch = [{"op": "add", "path": "/data/l", "value": "3"}]
    assert core.patch_namespaced_config_map("a", SPACE, patch).data == {"k": "2", "l": "3"}
    changed.data = {"k": "4"}
    refused(409, core.replace_namespaced_config_map, "a", SPACE, changed)
    changed.metadata.resource_version = None
    assert core.replace_namespaced_config_map("a", SPACE, changed).data == {"k": "4"}
    found = core.list_namespaced_config_map(SPACE, label_selector="app in (a, b)")
    assert [item.metadata.name for item in found.items] == ["a"]
    core.delete_namespaced_config_map("a", SPACE)
    refused(404, core.read_namespaced_config_map, "a", SPACE)


def pages(core):
    """A list in pages."""
    for number in range(7):
        body = client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="page-", labels={"page": "y"}),
                                  data={"number": str(number)})
        core.create_namespaced_config_map(SPACE, body)
    names, token = set(), None
    while token != "":
        part = core.list_namespaced_config_map(SPACE, label_selector="page=y", limit=3, _continue=token)
        names.update(item.metadata.name for item in part.items)
        token = part.metadata._continue or ""
    assert len(names) == 7
    core.delete_collection_namespaced_config_map(SPACE, label_selector="page=y")
    assert not core.list_namespaced_config_map(SPACE, label_selector="page=y").items


def watching(core):
    """A watch from the resource version of a list receives every later event, in order."""
    start = core.list_namespaced_secret(SPACE).metadata.resource_version

    def write():
        secret = client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"k": "v"})
        core.create_namespaced_secret(SPACE, secret)
        core.patch_namespaced_secret("s", SPACE, {"metadata": {"labels": {"seen": "yes"}}})
        core.delete_namespaced_secret("s", SPACE)

    writer = threading.Thread(target=write)
    writer.start()
    seen, stream = [], watch.Watch()
    for event in stream.stream(core.list_namespaced_secret, SPACE, resource_version=start, timeout_seconds=60):
        seen.append(event["type"])
        if event["type"] == "DELETED":
            stream.stop()
    writer.join()
    assert seen == ["ADDED", "MODIFIED", "DELETED"], seen


def definitions(api, dynamic_client):
    """A custom resource, through the dynamic client and its discovery."""
    utils.create_from_dict(api, DEFINITION)
    custom = client.CustomObjectsApi(api)
    place = ("python.example.com", "v1", SPACE, "lamps")
    lamp = {"apiVersion": "python.example.com/v1", "kind": "Lamp", "metadata": {"name": "l"}, "spec": {"watts": 400}}
    error = refused(422, custom.create_namespaced_custom_object, *place, lamp)
    assert "spec.watts in body should be less than or equal to 100" in error.body
    lamp["spec"]["watts"] = 40
    custom.create_namespaced_custom_object(*place, lamp)
    custom.patch_namespaced_custom_object_status(*place, "l", {"status": {"lit": True}})
    lamps = dynamic_client.resources.get(api_version="python.example.com/v1", kind="Lamp")
    assert lamps.get(name="l", namespace=SPACE).status.lit is True
    applied = lamps.server_side_apply(
        body={"apiVersion": "python.example.com/v1", "kind": "Lamp", "metadata": {"name": "l"},
              "spec": {"watts": 60}},
        name="l", namespace=SPACE, field_manager="python", force_conflicts=True)
    assert applied.spec.watts == 60
    client.ApiextensionsV1Api(api).delete_custom_resource_definition("lamps.python.example.com")


def workloads(api):
    """A Deployment with its defaults, its scale, and its status."""
    apps = client.AppsV1Api(api)
    utils.create_from_dict(api, {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": SPACE},
        "spec": {"selector": {"matchLabels": {"app": "d"}}, "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "c", "image": "example.com/c:1"}]}}},
    })
    made = apps.read_namespaced_deployment("d", SPACE)
    assert made.spec.replicas == 1 and made.spec.strategy.type == "RollingUpdate"
    apps.patch_namespaced_deployment_scale("d", SPACE, {"spec": {"replicas": 3}})
    assert apps.read_namespaced_deployment_scale("d", SPACE).spec.replicas == 3
    apps.patch_namespaced_deployment_status("d", SPACE, {"status": {"replicas": 2}})
    assert apps.read_namespaced_deployment("d", SPACE).status.replicas == 2
    apps.delete_namespaced_deployment("d", SPACE)


def main():
    config.load_kube_config()
    with client.ApiClient() as api:
        core = client.CoreV1Api(api)
        assert client.VersionApi(api).get_code().major == "1"
        core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=SPACE)))
        typed_objects(core)
        pages(core)
        watching(core)
        definitions(api, dynamic.DynamicClient(api))
        workloads(api)
        core.delete_namespace(SPACE)
    print("the Python client is served")


main()
