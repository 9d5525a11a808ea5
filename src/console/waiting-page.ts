import type { BuildStatus } from './console-files.js';

const TEXTS: Record<BuildStatus['state'] | 'none', { title: string; text: string }> = {
  installing: {
    title: 'The console is being installed',
    text: 'Its packages are downloaded now. The gateway is already serving requests.',
  },
  building: {
    title: 'The console is being built',
    text: 'This takes some seconds. The gateway is already serving requests.',
  },
  failed: {
    title: 'The console could not be built',
    text:
      'The reason is in <code>console/.build.log</code>. The gateway is not affected: use the <code>postern</code> command ' +
      'or the <a href="/docs">admin API</a>. Run <code>npm run build</code> to try again.',
  },
  none: {
    title: 'The console is not built',
    text: 'Start the gateway with <code>npm start</code>, or run <code>npm run build</code>.',
  },
};

/** How often the page reloads, in seconds. */
export const RELOAD_S = 2;

/** Shown under `/console` until the console is built. It reloads itself. */
export function waitingPage(status: BuildStatus | null): string {
  const { title, text } = TEXTS[status?.state ?? 'none'];
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="refresh" content="${RELOAD_S}">
<link rel="icon" href="data:,">
<title>Postern</title>
<style>body { font: 1rem/1.5 system-ui, sans-serif; max-width: 40rem; margin: 4rem auto; padding: 0 1rem }</style>
<h1>${title}</h1>
<p>${text}</p>
<p>This page reloads by itself.</p>
</html>
`;
}
