// The options of the command line.
import { parseArgs } from 'node:util';
import { chosen, NAMES } from './contenders/start-all.mjs';

const SCENARIOS = ['calls', 'latency', 'streams', 'uploads'];

export const HELP = `Usage: npm run bench -- [options]

Measures Postern, key check and durable rows on, side by side with no gateway (direct), a bare node:http + undici proxy,
nginx and haproxy (where installed) and @fastify/http-proxy, on this machine's loopback. Takes about half an hour.

  --quick            under 3 minutes: shorter windows, 2 rounds, streams and uploads of bare and postern only
  --rounds N         interleaved rounds (5)
  --only NAME,…      of ${NAMES.join(', ')}
  --peers            with @portkey-ai/gateway and LiteLLM too, installed by npm and pip into bench/results/peers;
                     one that cannot be installed here is left out, with the reason
  --scenario NAME,…  of ${SCENARIOS.join(', ')}
  --ladder           instead: what each layer of Postern costs, switched off one after the other
  --json FILE        write everything there as JSON (else to bench/results/)
  --cpu-prof FOLDER  let Postern write a CPU profile there; read it with: node bench/profile.mjs FILE
  --help`;

/** A compiler needs calls to warm up with, not seconds: `warmUp` ends with whichever of the two comes first. */
const FULL = {
  rounds: 5,
  windowMs: 20_000,
  warmUp: { most: 60_000, forMs: 30_000 },
  latencyMs: 10_000,
  baselineMs: 30_000,
  budgetMs: Infinity,
};
const QUICK = {
  rounds: 2,
  windowMs: 2_000,
  warmUp: { most: 20_000, forMs: 6_000 },
  latencyMs: 2_000,
  baselineMs: 2_000,
  budgetMs: 150_000,
};

/** @throws Error with a message for the one who typed it */
export function readOptions(args) {
  const { values } = parseArgs({
    args,
    options: {
      quick: { type: 'boolean', default: false },
      rounds: { type: 'string' },
      only: { type: 'string' },
      peers: { type: 'boolean', default: false },
      scenario: { type: 'string' },
      ladder: { type: 'boolean', default: false },
      json: { type: 'string' },
      'cpu-prof': { type: 'string' },
      help: { type: 'boolean', default: false },
    },
  });
  const base = values.quick ? QUICK : FULL;
  const rounds = values.rounds === undefined ? base.rounds : Number(values.rounds);
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > 100)
    throw new Error('--rounds takes a number from 1 to 100');
  const only = list('--only', values.only, NAMES);
  const names = chosen({ only, peers: values.peers });
  const compared = values.quick ? ['bare', 'postern'] : ['bare', 'nginx', 'haproxy', 'fastify', 'postern'];
  return {
    ...base,
    rounds,
    quick: values.quick,
    ladder: values.ladder,
    help: values.help,
    json: values.json ?? null,
    cpuProf: values['cpu-prof'] ?? null,
    names,
    /** With streams and uploads: directly there is nothing to be measured. */
    compared: compared.filter((name) => names.includes(name)),
    scenarios: list('--scenario', values.scenario, SCENARIOS) ?? SCENARIOS,
  };
}

function list(option, text, known) {
  if (text === undefined) return null;
  const names = text.split(',').filter(Boolean);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0 || names.length === 0)
    throw new Error(`${option} takes some of ${known.join(', ')}`);
  return names;
}
