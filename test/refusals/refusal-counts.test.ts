import { merged, recent, RefusalCounts, type Reason } from '../../src/refusals/refusal-counts.js';
import { OTHER_ID, UNKNOWN_ID } from '../../src/refusals/refusal.entity.js';

const AT = Date.parse('2031-01-31T12:00:30Z');
const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const reason = (more: Partial<Reason> = {}): Reason => ({
  team_id: UNKNOWN_ID,
  key_id: UNKNOWN_ID,
  code: 'invalid_api_key',
  rule_nr: '0',
  provider: '',
  model: '',
  ...more,
});
const keyId = (i: number) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
const sum = (counts: readonly { calls: number }[]) => counts.reduce((all, { calls }) => all + calls, 0);

it('counts each combination of a minute once, with its last request', () => {
  const counts = new RefusalCounts();
  for (let i = 0; i < 1_000; i++) counts.add(reason(), ID, AT + i);
  counts.add(reason({ code: 'not_found' }), ID, AT);
  expect(counts.take(AT)).toEqual([
    {
      ...reason(),
      minute: '2031-01-31T12:00:00.000Z',
      calls: 1_000,
      last_id: ID,
      last_at: '2031-01-31T12:00:30.999Z',
    },
    expect.objectContaining({ code: 'not_found', calls: 1 }),
  ]);
  expect(counts.take(AT)).toEqual([]);
});

it('bounds the combinations of one key in a minute, however often they are taken', () => {
  const counts = new RefusalCounts();
  const rows = [];
  for (let i = 0; i < 200; i++) {
    counts.add(reason({ key_id: keyId(1), team_id: keyId(2), model: `made-up-${i}` }), ID, AT);
    if (i % 10 === 0) rows.push(...counts.take(AT));
  }
  rows.push(...counts.take(AT));
  const own = rows.filter(({ key_id: id }) => id === keyId(1));
  expect([own.length, sum(own)]).toEqual([50, 50]);
  expect(new Set(rows.filter(({ key_id: id }) => id === OTHER_ID).map(({ model }) => model))).toEqual(
    new Set(['']),
  );
  expect(sum(rows)).toBe(200);
});

it('bounds the combinations of a minute over all keys, and counts the rest by code', () => {
  const counts = new RefusalCounts();
  for (let i = 0; i < 5_000; i++) counts.add(reason({ key_id: keyId(i), code: i % 2 ? 'a' : 'b' }), ID, AT);
  const rows = counts.take(AT);
  expect(rows.length).toBe(1_002);
  expect(sum(rows)).toBe(5_000);
});

it('forgets minutes that are over, also after the clock was set back', () => {
  const counts = new RefusalCounts();
  counts.add(reason({ key_id: keyId(1) }), ID, AT + 600_000);
  counts.add(reason({ key_id: keyId(1) }), ID, AT);
  expect(counts.take(AT + 60_000)).toHaveLength(2);
  expect(counts).toHaveProperty('minutes.size', 0);
});

it('adds up what waits, and drops what is older than 10 minutes', () => {
  const counts = new RefusalCounts();
  const add = (at: number) => {
    counts.add(reason(), ID, at);
    return counts.take(at);
  };
  const all = merged(merged(add(AT), add(AT + 1_000)), add(AT + 300_000));
  expect(all.map(({ calls }) => calls)).toEqual([2, 1]);
  expect(recent(all, AT + 599_000 - 30_000).map(({ calls }) => calls)).toEqual([2, 1]);
  expect(recent(all, AT + 600_000).map(({ calls }) => calls)).toEqual([1]);
});
