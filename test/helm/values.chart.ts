import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseAllDocuments } from 'yaml';
import { SECRET_VARIABLES } from '../../src/config/env-schema.js';
import { loadEnv } from '../../src/config/env.js';

const ROOT = join(__dirname, '../..');
const CHART = join(ROOT, 'deploy/helm/postern');
const MANIFESTS = join(ROOT, 'deploy/kubernetes');

interface Resource {
  kind: string;
  metadata: { name: string; namespace?: string; labels?: Record<string, string>; annotations?: object };
  data?: Record<string, string>;
  spec?: Record<string, unknown>;
}

function helm(args: string[], values: object = {}) {
  return spawnSync(process.env.HELM!, [...args, '--values', '-'], {
    input: JSON.stringify(values),
    encoding: 'utf8',
  });
}

function render(values: object = {}): Resource[] {
  const args = ['template', 'postern', CHART, '--namespace', 'postern', '--kube-version', '1.30.0'];
  const { status, stdout, stderr } = helm(args, values);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return resourcesOf(stdout);
}

function resourcesOf(text: string): Resource[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Resource | null)
    .filter((resource) => resource !== null);
}

/** The manifests of deploy/kubernetes as kustomize puts them together, as far as the chart has them. */
function manifests(): Resource[] {
  const read = (name: string) => readFileSync(join(MANIFESTS, name), 'utf8');
  const kustomization = parse(read('kustomization.yaml')) as {
    resources: string[];
    images: { newName: string; newTag: string }[];
    configMapGenerator: { literals: string[] }[];
  };
  const [{ newName, newTag }] = kustomization.images as [{ newName: string; newTag: string }];
  const settings = kustomization.configMapGenerator[0]!.literals.map((line) => {
    const at = line.indexOf('=');
    return [line.slice(0, at), line.slice(at + 1)];
  });
  const config = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'postern' },
    data: Object.fromEntries(settings) as Record<string, string>,
  };
  const files = kustomization.resources.filter((file) => file !== 'namespace.yaml');
  const all = files.flatMap((file) =>
    resourcesOf(read(file).replace('image: postern\n', `image: ${newName}:${newTag}\n`)),
  );
  return [config, ...all];
}

/** By kind and name, without what only a chart has. */
function plain(resources: readonly Resource[]): Record<string, unknown> {
  const entries = resources.map((resource) => [
    `${resource.kind} ${resource.metadata.name}`,
    JSON.parse(
      JSON.stringify({ ...resource, metadata: { name: resource.metadata.name } }),
      (key, value: unknown) =>
        ['app.kubernetes.io/instance', 'imagePullPolicy', 'checksum/settings'].includes(key)
          ? undefined
          : key === 'annotations'
            ? undefined
            : value,
    ) as unknown,
  ]);
  return Object.fromEntries(entries) as Record<string, unknown>;
}

const find = (resources: readonly Resource[], kind: string, name = 'postern') =>
  resources.find((resource) => resource.kind === kind && resource.metadata.name === name);
const text = (resource: Resource | undefined) => JSON.stringify(resource);

/** Another value than the default one for every value of the chart. */
const EVERY = {
  image: { repository: 'mine.example.com/postern', tag: '9.9.9', pullPolicy: 'Always' },
  imagePullSecrets: [{ name: 'pull' }],
  secretName: 'own-secret',
  settings: { PROVIDER_URL: 'https://llm.example.com', WORKERS: 2 },
  shutdown: { delayMs: 5_500, graceMs: 60_000 },
  database: {
    secretName: 'own-database',
    secretKey: 'url',
    cluster: { enabled: true, instances: 5, imageName: 'pg.example.com/pg:18', storage: '9Ti' },
  },
  autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 33, cpuUtilization: 44 },
  replicas: 7,
  journal: { size: '55Gi', storageClassName: 'fast' },
  resources: { requests: { cpu: '3' } },
  podDisruptionBudget: { enabled: true, maxUnavailable: 4 },
  networkPolicy: { enabled: true, egress: [{ to: [{ ipBlock: { cidr: '10.9.9.9/32' } }] }] },
  serviceMonitor: { enabled: true, interval: '77s', labels: { release: 'prometheus' } },
  volumes: [{ name: 'identity', projected: { sources: [] } }],
  volumeMounts: [{ name: 'identity', mountPath: '/var/run/identity' }],
  podAnnotations: { note: 'annotated' },
  nodeSelector: { disk: 'nvme' },
  tolerations: [{ key: 'gateways', operator: 'Exists' }],
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [] } },
};

describe('deploy/helm/postern', () => {
  it('is what deploy/kubernetes is, with its defaults', () => {
    expect(plain(render())).toEqual(plain(manifests()));
  });

  it('passes the linter with its defaults and with every value set', () => {
    for (const values of [{}, EVERY]) {
      const { status, stdout } = helm(['lint', '--strict', CHART, '--kube-version', '1.30.0'], values);
      expect([status, stdout]).toEqual([0, expect.stringContaining('0 chart(s) failed')]);
    }
  });

  it('uses every value', () => {
    const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as object;
    expect(Object.keys(EVERY).sort()).toEqual(Object.keys(values).sort());
    const all = render(EVERY);
    const gateway = text(find(all, 'StatefulSet'));
    for (const part of [
      ...[
        '"mine.example.com/postern:9.9.9"',
        '"imagePullPolicy":"Always"',
        '"imagePullSecrets":[{"name":"pull"}]',
      ],
      ...['"secretName":"own-secret"', '"secretName":"own-database"', '{"key":"url","path":"url"}'],
      ...['"terminationGracePeriodSeconds":96', '"storage":"55Gi"', '"storageClassName":"fast"'],
      ...['"cpu":"3"', '"note":"annotated"', '"disk":"nvme"', '"key":"gateways"', '"podAntiAffinity"'],
      ...['"name":"identity","projected"', '"mountPath":"/var/run/identity"'],
    ])
      expect(gateway).toContain(part);
    expect(find(all, 'ConfigMap')!.data).toMatchObject({
      PROVIDER_URL: 'https://llm.example.com',
      WORKERS: '2',
      SHUTDOWN_DELAY_MS: '5500',
      SHUTDOWN_GRACE_MS: '60000',
      DATABASE_URL_FILE: '/run/secrets/postern-db/url',
    });
    expect(text(find(all, 'HorizontalPodAutoscaler'))).toMatch(/"minReplicas":3,"maxReplicas":33.*44/);
    expect(text(find(all, 'PodDisruptionBudget'))).toContain('"maxUnavailable":4');
    expect(text(find(all, 'NetworkPolicy'))).toContain('10.9.9.9/32');
    expect(text(find(all, 'Cluster', 'postern-db'))).toMatch(/"instances":5.*pg:18.*9Ti/);
    const monitor = find(all, 'ServiceMonitor');
    expect(text(monitor)).toMatch(/"release":"prometheus".*"77s".*"name":"own-secret","key":"ADMIN_TOKEN"/);
    const monitored = monitor!.spec as { selector: { matchLabels: object } };
    expect(find(all, 'Service', 'postern-replicas')!.metadata.labels).toMatchObject(
      monitored.selector.matchLabels,
    );
  });

  it('leaves out what is turned off', () => {
    const all = render({
      database: { cluster: { enabled: false }, secretName: 'mine' },
      autoscaling: { enabled: false },
      podDisruptionBudget: { enabled: false },
      networkPolicy: { enabled: false },
      replicas: 3,
    });
    expect(all.map(({ kind }) => kind).sort()).toEqual([
      ...['ConfigMap', 'Service', 'Service', 'Service', 'StatefulSet'],
    ]);
    expect(find(all, 'StatefulSet')!.spec!.replicas).toBe(3);
  });

  it('gives the gateway settings that it accepts', () => {
    const { data } = find(render(), 'ConfigMap')!;
    const variables = Object.entries(data!).filter(([name]) => !name.endsWith('_FILE'));
    const secrets = {
      ADMIN_TOKEN: 'a'.repeat(43),
      MASTER_KEY: Buffer.alloc(32).toString('base64'),
      PROVIDER_KEY: 'sk-test',
      DATABASE_URL: 'postgres://postern@localhost/postern',
    };
    expect(loadEnv({ NODE_ENV: 'production', ...secrets, ...Object.fromEntries(variables) })).toMatchObject({
      host: '0.0.0.0',
      shutdownGraceMs: 300_000,
    });
  });

  it.each<[string, object]>([
    ['an unknown value', { networkpolicy: { enabled: false } }],
    ['a wrong type', { replicas: 'two' }],
    // The URL of a proxy need not have a password.
    ...SECRET_VARIABLES.filter((name) => name !== 'UPSTREAM_PROXY_URL').map((name): [string, object] => [
      `${name} among the settings`,
      { settings: { [name]: 'secret' } },
    ]),
    ['a setting that the chart sets', { settings: { PORT: '1' } }],
  ])('rejects %s', (_, values) => {
    const { status, stderr } = helm(['template', 'postern', CHART, '--kube-version', '1.30.0'], values);
    expect([status, stderr]).toEqual([
      1,
      expect.stringContaining("don't meet the specifications of the schema"),
    ]);
  });
});
