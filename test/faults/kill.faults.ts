import { killRounds, NAMED_POINTS } from '../support/kill-rounds.js';

const say = (line: string) => void process.stdout.write(`${line}\n`);

it('loses no row, doubles none and tells no lie when killed at each named point, under load', async () => {
  const told = await killRounds(
    NAMED_POINTS.flatMap((point) => [point, point, point]),
    say,
  );
  say(told);
}, 600_000);

it('loses no row, doubles none and tells no lie when killed at random instants, under load', async () => {
  const told = await killRounds(
    Array.from({ length: 20 }, () => 'random' as const),
    say,
  );
  say(told);
}, 600_000);
