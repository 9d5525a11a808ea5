// CycloneDX documents whose serial numbers and times are those of the commit, so that the same commit has the same ones.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import { BUILD_TOOLS } from '../pack.mjs';
import { npmScript } from '../prepare.mjs';
import { run } from './commit.mjs';

/**
 * @param folder with the lock file that the packages were installed from
 * @param name of what has them: npm would name the folder
 * @param omitted kinds of dependencies that are not shipped
 */
export function packageBom(folder, name, omitted, commit) {
  const omit = omitted.flatMap((kind) => ['--omit', kind]);
  const args = [npmScript(), 'sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', ...omit];
  const bom = JSON.parse(run(folder, process.execPath, ...args));
  bom.metadata.component.name = name;
  return ofCommit(withoutBuildTools(bom), commit);
}

/** What is left if nothing asks for the tools that only a clone has. */
function withoutBuildTools(bom) {
  const nameOf = (ref) => ref.replace(/@[^@]*$/, '');
  const asks = new Map(bom.dependencies.map(({ ref, dependsOn }) => [ref, dependsOn]));
  const kept = new Set([bom.metadata.component['bom-ref']]);
  for (const ref of kept)
    for (const asked of asks.get(ref) ?? []) if (!BUILD_TOOLS.includes(nameOf(asked))) kept.add(asked);
  return {
    ...bom,
    components: bom.components.filter((each) => kept.has(each['bom-ref'])),
    dependencies: bom.dependencies
      .filter(({ ref }) => kept.has(ref))
      .map(({ ref, dependsOn }) => ({ ref, dependsOn: dependsOn.filter((asked) => kept.has(asked)) })),
  };
}

export function chartBom({ root, version, commit }) {
  const { image } = parse(readFileSync(join(root, 'deploy/helm/postern/values.yaml'), 'utf8'));
  return ofCommit(
    {
      bomFormat: 'CycloneDX',
      specVersion: '1.5',
      version: 1,
      metadata: { component: { type: 'application', name: 'postern-chart', version } },
      components: [{ type: 'container', name: image.repository, version: image.tag || version }],
    },
    commit,
  );
}

/** A UUID of version 8 (RFC 9562) from the commit and the name. */
function ofCommit(bom, { id, time }) {
  const { name } = bom.metadata.component;
  const hex = createHash('sha256').update(`${id} ${name}`).digest('hex');
  const uuid = `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
  return {
    ...bom,
    serialNumber: `urn:uuid:${uuid}`,
    metadata: { ...bom.metadata, timestamp: time.toISOString() },
  };
}
