// What does each layer of Postern cost? One gateway for each rung, one layer less than the one before, and the bare proxy
// as the ground; all of them side by side in the closed loop.
import { join } from 'node:path';
import { startBare } from '../contenders/bare.mjs';
import { NODE_FLAGS, startGateway } from '../contenders/postern.mjs';
import { runRounds, warmUp } from '../scenarios/calls.mjs';
import { median, ratios } from '../statistics.mjs';
import { root } from '../workplace.mjs';
import { RUNGS } from './rungs.mjs';

export async function measureLadder(bench) {
  const contenders = [];
  for (const { name, rows } of RUNGS) {
    const args = [...NODE_FLAGS, join(root, 'bench/ladder/server.mjs'), name];
    const { database, ...gateway } = await startGateway(bench, name, args);
    contenders.push({ ...gateway, ...(rows && { database }), calls: 0 });
  }
  contenders.push({ ...(await startBare(bench)), calls: 0 });
  await warmUp(bench, contenders);
  const { rounds, parity } = await runRounds(bench, contenders);
  const of = (name) => rounds[name].map(({ gatewayMicros }) => gatewayMicros);
  const results = contenders.map(({ name }, i) => ({
    name,
    gatewayMicros: median(of(name)),
    // Round by round, so that what slows a machine down for a while cancels.
    cost:
      i === 0 ? null : median(of(name).map((micros, round) => of(contenders[i - 1].name)[round] - micros)),
    toBare: median(ratios(of(name), of('bare'))),
  }));
  return { results, rounds, parity };
}
