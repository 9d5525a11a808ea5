import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

const script = join(__dirname, '../../scripts/audit.mjs');

/** Runs `npm run audit` with a registry that reports a critical vulnerability of this package; null: it has no such service. */
async function audit(vulnerable: string | null): Promise<{ code: number | null; lines: string[] }> {
  const advisory = { id: 1, url: 'http://x/', title: 'x', severity: 'critical', vulnerable_versions: '*' };
  const registry = createServer(
    (req, res) =>
      void buffer(req).then((body) => {
        if (vulnerable === null || req.method !== 'POST') return res.writeHead(405).end('{}');
        const text = req.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
        const names = JSON.parse(text.toString()) as object;
        return res.end(JSON.stringify(vulnerable in names ? { [vulnerable]: [advisory] } : {}));
      }),
  ).listen(0, '127.0.0.1');
  await once(registry, 'listening');
  const url = `http://127.0.0.1:${(registry.address() as AddressInfo).port}/`;
  const child = execFile(process.execPath, [script], { env: { ...process.env, npm_config_registry: url } });
  let text = '';
  child.stdout!.on('data', (chunk: string) => (text += chunk));
  const [code] = (await once(child, 'close')) as [number | null];
  registry.close();
  return { code, lines: text.trim().split('\n') };
}

it('fails for a vulnerability of the gateway or the console', async () => {
  for (const [name, clean] of [
    ['undici', /^Packages of the console: 0 known/],
    ['react-dom', /^Packages of the gateway: 0 known/],
  ] as const) {
    const { code, lines } = await audit(name);
    expect(lines).toContainEqual(expect.stringMatching(`^critical: ${name} `));
    expect(lines).toContainEqual(expect.stringMatching(clean));
    expect(code).toBe(1);
  }
});

it('says for both that a registry has not reported, and fails nothing then', async () => {
  expect(await audit(null)).toEqual({
    code: 0,
    lines: ['gateway', 'console'].map(
      (what) => `Packages of the ${what}: not audited, the registry has not reported on them.`,
    ),
  });
});
