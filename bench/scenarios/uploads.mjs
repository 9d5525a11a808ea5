// Large bodies on their way: how much of them does a gateway hold in memory while the provider does not read?
import { setTimeout as sleep } from 'node:timers/promises';
import { uploadHead } from '../load/request.mjs';
import { upload } from '../load/uploads.mjs';
import { peakBytes, residentBytes } from '../memory.mjs';
import { startNodeProvider } from '../provider/node.mjs';
import { compareRows, startAll } from '../contenders/start-all.mjs';

const BYTES = 10 * 2 ** 20;
/** Several at a time, so that what one costs stands out from the noise. */
const AT_ONCE = 10;
const HOLD_MS = 1_500;

export async function measureUploads(bench) {
  const provider = await startNodeProvider(bench.workplace);
  const contenders = await startAll({ ...bench, provider }, bench.compared);
  const results = [];
  for (const contender of contenders) {
    // The first ones bring code and buffers into memory that stay there.
    await uploads(contender, 0);
    await sleep(500);
    const idle = residentBytes(contender.pid);
    const [peak] = await Promise.all([peakBytes(contender.pid, HOLD_MS), uploads(contender, HOLD_MS)]);
    const perUpload = peak === null ? null : Math.max(0, peak - idle) / AT_ONCE;
    results.push({ name: contender.name, idle, peak, perUpload });
    bench.say(
      `uploads: ${contender.name}: ${(perUpload / 2 ** 20).toFixed(2)} MiB for each of ${BYTES / 2 ** 20} MiB`,
    );
  }
  const parity = await compareRows(contenders);
  for (const { stop } of contenders) await stop();
  await provider.stop();
  return { bytes: BYTES, atOnce: AT_ONCE, results, parity };
}

async function uploads(contender, holdMs) {
  const head = uploadHead(contender, BYTES, holdMs);
  contender.calls += AT_ONCE;
  await Promise.all(Array.from({ length: AT_ONCE }, () => upload(contender.port, head, BYTES)));
}
