// LiteLLM's proxy, one worker, with its master key. Its own keys and its log of calls need a database engine that is
// neither in its package nor in a registry, so they are off, which makes it look better than it is in use.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { installPeer } from './peer.mjs';

export const LITELLM = '1.106.2';
const MASTER_KEY = 'sk-client';

export async function startLitellm({ workplace, provider }) {
  const folder = await installPeer(`litellm-${LITELLM}`, (at) => [
    ['python3', '-m', 'venv', at],
    [join(at, 'bin/pip'), 'install', '--quiet', `litellm[proxy]==${LITELLM}`],
  ]);
  if (folder === null) return null;
  const port = await workplace.freePort();
  const config = join(await workplace.subfolder('litellm'), 'config.yaml');
  // JSON is YAML.
  await writeFile(config, JSON.stringify(configFor(provider.port)));
  const command = [join(folder, 'bin/litellm'), '--config', config, '--host', '127.0.0.1'];
  const { pid, stop } = await workplace.start([...command, '--port', String(port), '--num_workers', '1'], {
    cores: workplace.cores.gateway,
    port,
    env: { LITELLM_MODE: 'PRODUCTION', LITELLM_LOG: 'ERROR', LITELLM_LOCAL_MODEL_COST_MAP: 'True' },
    name: 'litellm',
  });
  return { name: 'litellm', port, pid, stop, headers: { Authorization: `Bearer ${MASTER_KEY}` } };
}

function configFor(providerPort) {
  const litellm_params = {
    model: 'openai/gpt-4o-mini',
    api_base: `http://127.0.0.1:${providerPort}/v1`,
    api_key: 'sk-provider',
  };
  return {
    model_list: [{ model_name: 'gpt-4o-mini', litellm_params }],
    general_settings: { master_key: MASTER_KEY },
    litellm_settings: { telemetry: false },
  };
}
