// The stand-in where nginx is missing, and for streams and uploads everywhere: a raw socket server of our own.
import { join } from 'node:path';
import { root } from '../workplace.mjs';

export async function startLeanProvider(workplace) {
  const { pid, found, stop } = await workplace.start(
    [process.execPath, join(root, 'bench/provider/lean-server.mjs')],
    {
      cores: workplace.cores.others,
      ready: (printed) => /listening on (\d+)\n/.exec(printed),
      name: 'the lean provider',
    },
  );
  return { kind: 'lean', port: Number(found[1]), pid, stop };
}
