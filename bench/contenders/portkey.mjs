// @portkey-ai/gateway. What npm has of it checks no keys and writes no log.
import { join } from 'node:path';
import { installPeer } from './peer.mjs';

export const PORTKEY = '1.15.2';
const NPM_FLAGS = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts'];

export async function startPortkey({ workplace, provider, node = process.execPath }) {
  const folder = await installPeer(`portkey-${PORTKEY}`, (prefix) => [
    ['npm', 'install', ...NPM_FLAGS, '--prefix', prefix, `@portkey-ai/gateway@${PORTKEY}`],
  ]);
  if (folder === null) return null;
  const port = await workplace.freePort();
  const program = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  const { pid, stop } = await workplace.start([node, program, '--headless', `--port=${port}`], {
    cores: workplace.cores.gateway,
    port,
    env: { NODE_ENV: 'production', TRUSTED_CUSTOM_HOSTS: '127.0.0.1,localhost' },
    name: 'portkey',
  });
  const headers = {
    Authorization: 'Bearer sk-provider',
    'x-portkey-provider': 'openai',
    'x-portkey-custom-host': `http://127.0.0.1:${provider.port}/v1`,
  };
  return { name: 'portkey', port, pid, stop, headers };
}
