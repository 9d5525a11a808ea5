// The stand-in provider where nginx is missing, and for streams and uploads everywhere: a raw socket server in Node.js.
import { join } from 'node:path';
import { root } from '../workplace.mjs';

export async function startNodeProvider(workplace) {
  const { pid, found, stop } = await workplace.start(
    [process.execPath, join(root, 'bench/provider/node-server.mjs')],
    {
      cores: workplace.cores.others,
      ready: (printed) => /listening on (\d+)\n/.exec(printed),
      name: 'the provider',
    },
  );
  return { kind: 'node', port: Number(found[1]), pid, stop };
}
