// A closed loop for each of several gateways at the same time, all on one core, so that other programs slow them all down alike.
import { treeMicros } from '../cpu-time.mjs';
import { closedLoop } from './closed-loop.mjs';
import { chatRequest } from './request.mjs';

const CONNECTIONS = 32;
export const WARM_UP = { most: 20_000, forMs: 15_000 };

/** @param requestFor the bytes of a contender's calls @returns µs of processor time per call of each */
export async function loadSideBySide(contenders, bounds, requestFor = chatRequest) {
  const before = contenders.map(({ pid }) => treeMicros(pid));
  const loops = await Promise.all(
    contenders.map((contender) =>
      closedLoop({
        port: contender.port,
        request: requestFor(contender),
        connections: CONNECTIONS,
        ...bounds,
      }),
    ),
  );
  return contenders.map((contender, i) => {
    contender.calls += loops[i].calls;
    return (treeMicros(contender.pid) - before[i]) / loops[i].calls;
  });
}
