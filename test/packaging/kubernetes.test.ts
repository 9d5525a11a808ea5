import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { parse, parseAllDocuments } from 'yaml';
import { loadEnv } from '../../src/config/env.js';

const folder = join(__dirname, '../../deploy/kubernetes');
const read = (name: string) => readFileSync(join(folder, name), 'utf8');

interface Probe {
  httpGet: { path: string; port: string };
}
interface Container {
  image: string;
  envFrom: { configMapRef: { name: string } }[];
  ports: { name: string; containerPort: number }[];
  startupProbe: Probe;
  livenessProbe: Probe;
  readinessProbe: Probe;
  securityContext: object;
  volumeMounts: { name: string; mountPath: string }[];
}
interface Pod {
  terminationGracePeriodSeconds: number;
  securityContext: object;
  containers: [Container];
  volumes: { name: string; secret?: { secretName: string; items?: { path: string }[] } }[];
}
interface Resource {
  kind: string;
  metadata: { name: string };
  spec: {
    serviceName?: string;
    clusterIP?: string;
    selector?: { matchLabels?: object; 'app.kubernetes.io/component'?: string };
    podSelector?: { matchLabels?: object };
    scaleTargetRef?: { kind: string; name: string };
    template?: { metadata: { labels: object }; spec: Pod };
    volumeClaimTemplates?: { metadata: { name: string } }[];
    ports?: { name: string; targetPort: string }[];
    ingress?: { from: object[] }[];
    egress?: { to: { podSelector?: { matchLabels: Record<string, string> } }[] }[];
  };
}
interface Backend {
  name: string;
  port: { name: string };
}
const kustomization = parse(read('kustomization.yaml')) as {
  resources: string[];
  images: { name: string; newTag: string }[];
  configMapGenerator: [{ name: string; literals: string[] }];
};
const resources = kustomization.resources.flatMap((file) =>
  parseAllDocuments(read(file)).map((document) => document.toJS() as Resource),
);
const one = (kind: string) => resources.find((resource) => resource.kind === kind)!;
const gateway = one('StatefulSet');
const pod = gateway.spec.template!.spec;
const [container] = pod.containers;
const settings = Object.fromEntries(
  kustomization.configMapGenerator[0].literals.map((line) => {
    const at = line.indexOf('=');
    return [line.slice(0, at), line.slice(at + 1)];
  }),
);

describe('deploy/kubernetes', () => {
  it('is put together from all files of the folder', () => {
    expect(['kustomization.yaml', ...kustomization.resources].sort()).toEqual(readdirSync(folder).sort());
    expect(resources.every(({ kind }) => typeof kind === 'string')).toBe(true);
  });

  it('gives production an environment it accepts, secrets from files that are mounted', () => {
    const mounts = container.volumeMounts.map(({ name, mountPath }) => {
      const secret = pod.volumes.find((volume) => volume.name === name)?.secret;
      return { mountPath, secret };
    });
    const place = mkdtempSync(join(tmpdir(), 'postern-secrets-'));
    const values: Record<string, string> = {
      ADMIN_TOKEN_FILE: 'a'.repeat(43),
      MASTER_KEY_FILE: Buffer.alloc(32).toString('base64'),
      PROVIDER_KEY_FILE: 'sk-0123456789',
      // The form in which CloudNativePG writes it.
      DATABASE_URL_FILE: 'postgresql://postern:secret@postern-db-rw.postern:5432/postern',
    };
    const given = { ...settings, NODE_ENV: 'production' };
    for (const [name, value] of Object.entries(settings)) {
      if (!name.endsWith('_FILE')) continue;
      expect(mounts.some(({ mountPath, secret }) => secret && value.startsWith(`${mountPath}/`))).toBe(true);
      writeFileSync(join(place, name), values[name]!);
      Object.assign(given, { [name]: join(place, name) });
    }
    const env = loadEnv(given);
    rmSync(place, { recursive: true });
    // Every name is one of the schema's, or it would have no effect.
    expect(Object.keys(settings).filter((name) => !(camelCase(name.replace(/_FILE$/, '')) in env))).toEqual(
      [],
    );
    expect([env.port, env.adminPort]).toEqual(container.ports.map(({ containerPort }) => containerPort));
    expect(container.envFrom).toEqual([{ configMapRef: { name: kustomization.configMapGenerator[0].name } }]);
  });

  it('keeps DATA_DIR in a folder of its own in the volume of the replica', () => {
    const claims = gateway.spec.volumeClaimTemplates!.map(({ metadata }) => metadata.name);
    const mount = container.volumeMounts.find(({ name }) => claims.includes(name))!;
    expect(settings.DATA_DIR).toMatch(new RegExp(`^${mount.mountPath}/.`));
    const known = [...claims, ...pod.volumes.map(({ name }) => name)];
    expect(container.volumeMounts.map(({ name }) => name).sort()).toEqual(known.sort());
  });

  it('allows more time to stop than the gateway takes', () => {
    const takes = Number(settings.SHUTDOWN_DELAY_MS) + Number(settings.SHUTDOWN_GRACE_MS);
    // 12 s: what follows the grace when Postgres hangs.
    expect(pod.terminationGracePeriodSeconds * 1000).toBeGreaterThan(takes + 12_000);
    expect(Number(settings.SHUTDOWN_DELAY_MS)).toBeGreaterThan(0);
  });

  it('probes /health/live and /health/ready, on a port that exists', () => {
    const ports = container.ports.map(({ name }) => name);
    const { startupProbe, livenessProbe, readinessProbe } = container;
    expect(startupProbe.httpGet.path).toBe('/health/live');
    expect(livenessProbe.httpGet.path).toBe('/health/live');
    expect(readinessProbe.httpGet.path).toBe('/health/ready');
    for (const { httpGet } of [startupProbe, livenessProbe, readinessProbe])
      expect(ports).toContain(httpGet.port);
    for (const { kind, spec } of resources)
      if (kind === 'Service') for (const { targetPort } of spec.ports!) expect(ports).toContain(targetPort);
  });

  it('selects the replicas by a label they have, and names what exists', () => {
    const labels = gateway.spec.template!.metadata.labels;
    for (const { kind, spec } of resources) {
      if (kind === 'Service') expect(spec.selector).toEqual(labels);
      if (['StatefulSet', 'PodDisruptionBudget'].includes(kind))
        expect(spec.selector!.matchLabels).toEqual(labels);
    }
    expect(one('NetworkPolicy').spec.podSelector!.matchLabels).toEqual(labels);
    const headless = resources.find(({ spec }) => spec?.clusterIP === 'None')!;
    expect(gateway.spec.serviceName).toBe(headless.metadata.name);
    expect(one('HorizontalPodAutoscaler').spec.scaleTargetRef).toMatchObject({
      kind: 'StatefulSet',
      name: gateway.metadata.name,
    });
    const cluster = one('Cluster').metadata.name;
    expect(pod.volumes.map(({ secret }) => secret?.secretName)).toContain(`${cluster}-app`);
    const reached = one('NetworkPolicy').spec.egress!.flatMap(({ to }) =>
      to.map(({ podSelector }) => podSelector?.matchLabels),
    );
    expect(reached).toContainEqual({ 'cnpg.io/cluster': cluster });
    const { version } = JSON.parse(readFileSync(join(folder, '../../package.json'), 'utf8')) as {
      version: string;
    };
    expect(kustomization.images).toMatchObject([{ name: container.image, newTag: version }]);
  });

  it('lets nobody reach the database but the gateways, its own instances and the operator', () => {
    const instances = { 'cnpg.io/cluster': one('Cluster').metadata.name };
    const policy = resources.find(
      ({ kind, spec }) =>
        kind === 'NetworkPolicy' && isDeepStrictEqual(spec.podSelector!.matchLabels, instances),
    )!;
    expect(policy.spec.ingress!.flatMap(({ from }) => from)).toEqual([
      { podSelector: { matchLabels: gateway.spec.template!.metadata.labels } },
      { podSelector: { matchLabels: instances } },
      {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'cnpg-system' } },
        podSelector: { matchLabels: { 'app.kubernetes.io/name': 'cloudnative-pg' } },
      },
    ]);
  });

  it('gives the gateway no more rights than it needs', () => {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      fsGroup: 1000,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
  });

  it('lets people sign in with what the guide adds: settings that are accepted, and services that exist', () => {
    const guide = readFileSync(join(folder, '../../docs/guides/kubernetes.md'), 'utf8');
    const [, section] = guide.split('\n## Let people sign in\n', 2) as [string, string];
    const blocks = section.split('   ```yaml\n').slice(1);
    const [added, ingress] = blocks.map((text): unknown =>
      parse(text.split('   ```', 1)[0]!.replace(/^ {3}/gm, '')),
    ) as [
      { settings: Record<string, string> },
      { spec: { rules: { host: string; http: { paths: { backend: { service: Backend } }[] } }[] } },
    ];
    const { OIDC_CLIENT_SECRET_FILE: secret, ...more } = added.settings;
    expect(secret).toMatch(new RegExp(`^${dirname(settings.MASTER_KEY_FILE!)}/`));
    expect(loadEnv({ ...more, OIDC_CLIENT_SECRET: 'secret' })).toMatchObject({ signIn: 'on' });

    const { rules } = ingress.spec;
    for (const [{ host, http }, url, admin] of [
      [rules[0]!, more.GATEWAY_URL, false],
      [rules[1]!, more.PUBLIC_URL, true],
    ] as const) {
      const { name, port } = http.paths[0]!.backend.service;
      const service = resources.find(({ kind, metadata }) => kind === 'Service' && metadata.name === name)!;
      expect(service.spec.ports!.find((one) => one.name === port.name)!.targetPort).toBe(
        admin ? 'admin' : 'calls',
      );
      expect(`https://${host}`).toBe(url);
    }
  });

  const kubectl = spawnSync('kubectl', ['kustomize', '--help']).status === 0;
  (kubectl ? it : it.skip)('is what kustomize builds (skipped where there is no kubectl)', () => {
    const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
    expect([status, stderr]).toEqual([0, '']);
    const built = parseAllDocuments(stdout).map((document) => document.toJS() as Resource);
    expect(built).toHaveLength(resources.length + 1);
  });
});

function camelCase(name: string): string {
  return name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}
