// The stand-in provider where nginx is missing, and for streams and uploads everywhere: a raw socket server in Node.js.
import { join } from 'node:path';
import { root } from '../workplace.mjs';

/** @param program which one */
export async function startNodeProvider(workplace, program = 'bench/provider/node-server.mjs') {
  const { pid, found, stop } = await workplace.start([process.execPath, join(root, program)], {
    cores: workplace.cores.others,
    ready: (printed) => /listening on (\d+)\n/.exec(printed),
    name: 'the provider',
  });
  return { kind: 'node', port: Number(found[1]), pid, stop };
}
