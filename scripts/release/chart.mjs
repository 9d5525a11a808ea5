// The chart as an OCI artifact: an image layout in a folder, as registries and `helm pull` know charts
// (https://helm.sh/docs/topics/registries/). With HELM, also rendered from there.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { parse } from 'yaml';
import { digestOf, run, say } from './commit.mjs';

const CONFIG = 'application/vnd.cncf.helm.config.v1+json';
const LAYER = 'application/vnd.cncf.helm.chart.content.v1.tar+gzip';
const MANIFEST = 'application/vnd.oci.image.manifest.v1+json';

/** @returns the name of the chart's archive in `to` */
export function packChart({ folder, to, version, commit }) {
  const name = `postern-chart-${version}.tgz`;
  const created = commit.time.toISOString();
  // The same bytes from every machine: one order, one time, no owner.
  run(
    dirname(folder),
    'sh',
    '-ec',
    `tar --sort=name --mtime='${created}' --owner=0 --group=0 --numeric-owner --format=ustar -cf - ${basename(folder)} | gzip -n -9 > '${join(to, name)}'`,
  );
  const blobs = join(to, 'chart-oci', 'blobs', 'sha256');
  mkdirSync(blobs, { recursive: true });
  const add = (mediaType, bytes) => {
    const digest = digestOf(bytes);
    writeFileSync(join(blobs, digest), bytes);
    return { mediaType, digest: `sha256:${digest}`, size: bytes.length };
  };
  const json = (value) => Buffer.from(JSON.stringify(value));
  const meta = parse(readFileSync(join(folder, 'Chart.yaml'), 'utf8'));
  const annotations = {
    'org.opencontainers.image.title': meta.name,
    'org.opencontainers.image.version': version,
    'org.opencontainers.image.revision': commit.id,
    'org.opencontainers.image.created': created,
  };
  const manifest = add(
    MANIFEST,
    json({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: add(CONFIG, json(meta)),
      layers: [add(LAYER, readFileSync(join(to, name)))],
      annotations,
    }),
  );
  const tagged = { ...manifest, annotations: { 'org.opencontainers.image.ref.name': version } };
  const at = (file) => join(to, 'chart-oci', file);
  writeFileSync(at('oci-layout'), json({ imageLayoutVersion: '1.0.0' }));
  writeFileSync(at('index.json'), json({ schemaVersion: 2, manifests: [tagged] }));
  const { HELM } = process.env;
  if (HELM) run(to, HELM, 'template', 'postern', join(to, name), '--kube-version', '1.30.0');
  say(
    `The chart is packed${HELM ? ', and renders from its archive' : ' (not rendered: set HELM to a helm 3)'}`,
  );
  return name;
}
