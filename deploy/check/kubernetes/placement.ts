import assert from 'node:assert/strict';
import { text } from 'node:stream/consumers';
import { parseAllDocuments } from 'yaml';

/**
 * Reads the chart as rendered by Helm from standard input and checks the pods and service accounts
 * of ci/least-values.yaml and ci/everything-values.yaml.
 */
interface Rendered {
  kind: string;
  metadata: { name: string; labels?: Record<string, string>; annotations?: Record<string, string> };
  spec: {
    template: { metadata: { labels: Record<string, string> }; spec: PodSpec };
    selector: { matchLabels: object };
  };
}

interface PodSpec {
  serviceAccountName?: string;
  priorityClassName?: string;
  nodeSelector?: object;
  affinity?: object;
  tolerations?: { key: string }[];
  topologySpreadConstraints?: {
    topologyKey: string;
    maxSkew: number;
    whenUnsatisfiable: string;
    labelSelector: { matchLabels: object };
    matchLabelKeys: string[];
  }[];
  volumes: { name: string }[];
  containers: { volumeMounts: { mountPath: string }[] }[];
}

const documents = parseAllDocuments(await text(process.stdin))
  .flatMap((document) => [document.toJS() as Rendered | null])
  .filter((rendered) => rendered !== null);
const ofKind = (kind: string) => documents.filter((rendered) => rendered.kind === kind);

function deployment(component: string) {
  const found = ofKind('Deployment').find(({ metadata }) => metadata.name === `bank-${component}`);
  assert(found, `there is no Deployment bank-${component}`);
  const { template, selector } = found.spec;
  return { labels: template.metadata.labels, pod: template.spec, selector: selector.matchLabels };
}

const spread = (component: string) =>
  deployment(component).pod.topologySpreadConstraints?.map(({ topologyKey, maxSkew, whenUnsatisfiable }) => [
    topologyKey,
    maxSkew,
    whenUnsatisfiable,
  ]);
const keys = (component: string) => deployment(component).pod.tolerations?.map(({ key }) => key);
const mounts = (component: string) =>
  deployment(component).pod.containers[0]?.volumeMounts.map(({ mountPath }) => mountPath);
const accounts = () =>
  ofKind('ServiceAccount')
    .map(({ metadata }) => metadata.name)
    .toSorted();
const zonesThenNodes = [
  ['topology.kubernetes.io/zone', 1, 'ScheduleAnyway'],
  ['kubernetes.io/hostname', 1, 'ScheduleAnyway'],
];
const services = ['gateway', 'ledger', 'accounts', 'webhooks'];

function least(): void {
  for (const component of services) {
    const { pod, labels, selector } = deployment(component);
    assert.deepEqual(
      [
        pod.serviceAccountName,
        spread(component),
        pod.nodeSelector,
        pod.affinity,
        pod.tolerations,
        pod.priorityClassName,
      ],
      [`bank-${component}`, zonesThenNodes, undefined, undefined, undefined, undefined],
    );
    // Each service is spread separately, and pods that a rollout is about to remove are not
    // counted.
    for (const { labelSelector, matchLabelKeys } of pod.topologySpreadConstraints ?? [])
      assert.deepEqual([labelSelector.matchLabels, matchLabelKeys], [selector, ['pod-template-hash']]);
    assert.deepEqual([labels, mounts(component)], [selector, ['/tmp', '/run/core-banking']]);
  }
  assert.deepEqual(accounts(), [...services, 'secrets'].map((component) => `bank-${component}`).toSorted());
}

function everything(): void {
  const [ledger, other] = [deployment('ledger'), deployment('accounts')];
  assert.deepEqual([ledger.pod.serviceAccountName, other.pod.serviceAccountName], ['bank-books', 'shared']);
  assert.deepEqual(accounts(), ['bank-books', 'bank-dashboard', 'bank-gateway', 'bank-webhooks']);
  assert.deepEqual(
    ofKind('ServiceAccount').find(({ metadata }) => metadata.name === 'bank-books')?.metadata.annotations,
    { 'eks.amazonaws.com/role-arn': 'arn:aws:iam::111122223333:role/books' },
  );
  assert.deepEqual([ledger.pod.priorityClassName, other.pod.priorityClassName], ['bank-books', 'bank']);
  assert.deepEqual(
    [Object.keys(ledger.pod.affinity ?? {}), Object.keys(other.pod.affinity ?? {})],
    [['podAntiAffinity'], ['nodeAffinity']],
  );
  assert.deepEqual(
    [spread('ledger'), spread('accounts')],
    [[['topology.kubernetes.io/zone', 2, 'DoNotSchedule']], zonesThenNodes],
  );
  assert.deepEqual(
    [ledger.pod.nodeSelector, other.pod.nodeSelector],
    [{ disk: 'fast', 'kubernetes.io/os': 'linux' }, { 'kubernetes.io/os': 'linux' }],
  );
  assert.deepEqual([keys('ledger'), keys('accounts')], [['bank', 'books'], ['bank']]);
  assert.deepEqual(
    [mounts('ledger'), mounts('accounts')],
    [
      ['/tmp', '/run/core-banking', '/scratch', '/ca'],
      ['/tmp', '/run/core-banking', '/scratch'],
    ],
  );
  assert.deepEqual(ledger.pod.volumes.map(({ name }) => name).toSorted(), ['ca', 'files', 'scratch', 'tmp']);
  const common = { ...other.selector, 'app.kubernetes.io/part-of': 'bank', team: 'payments' };
  assert.deepEqual(
    [ledger.labels, other.labels],
    [{ ...common, ...ledger.selector, 'azure.workload.identity/use': 'true' }, common],
  );
  for (const { kind, metadata } of documents)
    assert.equal(metadata.labels?.['app.kubernetes.io/part-of'], 'bank', `${kind} ${metadata.name}`);
}

if (process.argv[2] === 'least') least();
else everything();
