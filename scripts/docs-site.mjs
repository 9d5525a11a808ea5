// `npm run docs:site`: the documentation as a site in site/dist, with a search, llms.txt, and each page as Markdown too.
//
// DOCS_BASE    the path that the site is served under ("/")
// DOCS_SOURCE  the address of the files of this commit, for links to the source; without it these are text
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { runNode } from './child.mjs';
import { install, isInstalled, main, root, step, StepError } from './prepare.mjs';

const folder = join(root, 'site');
const dist = join(folder, 'dist');

await main(async () => {
  const { DOCS_BASE: base = '/', DOCS_SOURCE: source } = process.env;
  if (!/^\/(?:.*\/)?$/.test(base)) throw new StepError(`DOCS_BASE must begin and end with "/", as in /docs/`);
  if (!isInstalled({ folder, all: true })) await install(process.stdout, { folder, all: true });
  const { writePages, llmsText } = await import('../site/pages.mjs');
  const work = mkdtempSync(join(tmpdir(), 'postern-site-'));
  try {
    const pages = join(work, 'pages');
    const written = writePages({ root, to: pages, source: source?.replace(/\/$/, '') ?? null });
    // VitePress looks for its configuration below the folder that it builds, and for itself above.
    for (const name of ['config.mjs', 'pages.mjs'])
      cpSync(join(folder, name), join(work, '.vitepress', name));
    symlinkSync(join(folder, 'node_modules'), join(work, 'node_modules'));
    const vitepress = join(folder, 'node_modules', 'vitepress', 'bin', 'vitepress.js');
    await step(process.stdout, 'Building the site', {
      remedy: 'The message of VitePress is above.',
      work: () =>
        runNode([vitepress, 'build', '.', '--base', base], {
          cwd: work,
          stdio: ['ignore', 'ignore', 'inherit'],
        }),
    });
    const out = join(work, '.vitepress', 'dist');
    cpSync(pages, out, { recursive: true });
    const { description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    writeFileSync(
      join(out, 'llms.txt'),
      llmsText(readFileSync(join(pages, 'index.md'), 'utf8'), description),
    );
    rmSync(dist, { recursive: true, force: true });
    cpSync(out, dist, { recursive: true });
    console.log(`${dist}: ${written.length} pages`);
  } finally {
    rmSync(work, { recursive: true });
  }
  return 0;
});
