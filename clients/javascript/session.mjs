// A session with the JavaScript client: typed objects, an informer, custom resources. An unexpected answer ends it with an error.

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';

// The package is not beside this file: the first argument is its folder.
const k8s = createRequire(`${process.argv[2]}/`)('@kubernetes/client-node');

const namespace = 'javascript';
const [group, version, plural] = ['javascript.example.com', 'v1', 'lamps'];

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    names: { kind: 'Lamp', plural },
    scope: 'Namespaced',
    versions: [{
      name: version, served: true, storage: true,
      schema: { openAPIV3Schema: {
        type: 'object',
        properties: { spec: { type: 'object', properties: { watts: { type: 'integer', maximum: 100 } } } },
      } },
    }],
  },
};

// The body of the refusal of a call, which must have this code.
async function refused(code, call) {
  try {
    await call;
  } catch (error) {
    assert.equal(error.code, code, error.body);
    return error.body;
  }
  assert.fail(`not refused with ${code}`);
}

// Typed objects: created, read, updated in several ways, listed by label, deleted.
async function typedObjects(core) {
  const body = { metadata: { name: 'a', labels: { app: 'a' } }, data: { k: '1' } };
  const made = await core.createNamespacedConfigMap({ namespace, body });
  assert.ok(made.metadata.uid && made.metadata.creationTimestamp instanceof Date);
  assert.match(await refused(409, core.createNamespacedConfigMap({ namespace, body })), /AlreadyExists/);
  const patch = (type, body) =>
    core.patchNamespacedConfigMap({ name: 'a', namespace, body }, k8s.setHeaderOptions('Content-Type', type));
  const types = k8s.PatchStrategy;
  assert.deepEqual((await patch(types.MergePatch, { data: { k: '2' } })).data, { k: '2' });
  assert.deepEqual((await patch(types.StrategicMergePatch, { data: { l: '3' } })).data, { k: '2', l: '3' });
  const operations = [{ op: 'remove', path: '/data/k' }];
  assert.deepEqual((await patch(types.JsonPatch, operations)).data, { l: '3' });
  await refused(409, core.replaceNamespacedConfigMap({ name: 'a', namespace, body: made }));
  const found = await core.listNamespacedConfigMap({ namespace, labelSelector: 'app=a' });
  assert.deepEqual(found.items.map((item) => item.metadata.name), ['a']);
  await core.deleteNamespacedConfigMap({ name: 'a', namespace });
  await refused(404, core.readNamespacedConfigMap({ name: 'a', namespace }));
}

// An informer lists, watches from there, and receives every event in order.
async function informer(config, core) {
  const seen = [];
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  const secrets = k8s.makeInformer(config, path, () => core.listNamespacedSecret({ namespace }));
  const ended = new Promise((resolve, reject) => {
    for (const event of ['add', 'update', 'delete']) {
      secrets.on(event, (secret) => {
        seen.push(`${event} ${secret.metadata.name}`);
        if (event === 'delete') resolve();
      });
    }
    secrets.on('error', reject);
  });
  await core.createNamespacedSecret({ namespace, body: { metadata: { name: 's' }, stringData: { k: 'v' } } });
  await secrets.start();
  const body = { metadata: { labels: { seen: 'yes' } } };
  const merge = k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch);
  await core.patchNamespacedSecret({ name: 's', namespace, body }, merge);
  await core.deleteNamespacedSecret({ name: 's', namespace });
  await ended;
  await secrets.stop();
  assert.deepEqual(seen, ['add s', 'update s', 'delete s']);
}

// A custom resource, with the object API that finds kinds by discovery, and by server-side apply.
async function definitions(config) {
  const objects = k8s.KubernetesObjectApi.makeApiClient(config);
  await objects.create(definition);
  const custom = config.makeApiClient(k8s.CustomObjectsApi);
  const lamp = { apiVersion: `${group}/${version}`, kind: 'Lamp', metadata: { name: 'l', namespace }, spec: { watts: 400 } };
  const place = { group, version, namespace, plural };
  const refusal = await refused(422, custom.createNamespacedCustomObject({ ...place, body: lamp }));
  assert.match(refusal, /spec.watts in body should be less than or equal to 100/);
  lamp.spec.watts = 40;
  await objects.create(lamp);
  lamp.spec.watts = 60;
  const applied = await objects.patch(lamp, undefined, undefined, 'javascript', true, k8s.PatchStrategy.ServerSideApply);
  assert.equal(applied.spec.watts, 60);
  const read = await custom.getNamespacedCustomObject({ ...place, name: 'l' });
  assert.deepEqual(read.metadata.managedFields.map((entry) => entry.operation).sort(), ['Apply', 'Update']);
  await objects.delete(definition);
}

async function main() {
  const config = new k8s.KubeConfig();
  config.loadFromDefault();
  const core = config.makeApiClient(k8s.CoreV1Api);
  assert.equal((await config.makeApiClient(k8s.VersionApi).getCode()).major, '1');
  await core.createNamespace({ body: { metadata: { name: namespace } } });
  await typedObjects(core);
  await informer(config, core);
  await definitions(config);
  await core.deleteNamespace({ name: namespace });
  console.log('the JavaScript client is served');
}

await main();
