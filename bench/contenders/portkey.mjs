// @portkey-ai/gateway, a gateway of the same kind, for `--peers`: installed into the run's folder on demand. No keys, no log.
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

const PACKAGE = '@portkey-ai/gateway@1.15.2';
const INSTALL_MS = 180_000;

export async function startPortkey({ workplace, provider }) {
  const folder = await workplace.subfolder('portkey');
  const installed = join(folder, 'node_modules/@portkey-ai/gateway/build/start-server.js');
  try {
    await promisify(execFile)(
      'npm',
      ['install', '--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder, PACKAGE],
      { cwd: folder, timeout: INSTALL_MS },
    );
  } catch (error) {
    process.stderr.write(`portkey is left out, it cannot be installed: ${error.message.split('\n')[0]}\n`);
    return null;
  }
  const port = await workplace.freePort();
  const { pid, stop } = await workplace.start([process.execPath, installed, '--headless', `--port=${port}`], {
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
