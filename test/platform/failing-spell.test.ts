import { FailingSpell } from '../../src/platform/failing-spell.js';

it('lasts from the first failure until an attempt succeeds', () => {
  const spell = new FailingSpell();
  expect(spell.ms(0)).toBe(0);
  spell.failed(1_000);
  spell.failed(4_000);
  expect(spell.ms(9_000)).toBe(8_000);
  spell.succeeded(9_500);
  expect(spell.ms(9_500)).toBe(0);
});

it('goes on while attempts succeed only now and then, and ends when they succeed for 10 seconds', () => {
  const spell = new FailingSpell();
  // As behind a pooler that gives the session to others: every other attempt fails.
  for (let at = 0; at <= 30_000; at += 2_000) {
    spell.failed(at);
    if (at > 5_000) expect(spell.ms(at)).toBeGreaterThan(5_000);
    spell.succeeded(at + 1_000);
    if (at > 5_000) expect(spell.ms(at + 1_000)).toBeGreaterThan(5_000);
  }
  expect(spell.ms(40_999)).toBe(30_000);
  expect(spell.ms(41_001)).toBe(0);
  // Another failure, much later, is a spell of its own.
  spell.failed(60_000);
  expect(spell.ms(60_100)).toBe(100);
});

it('one failure between successes is none', () => {
  const spell = new FailingSpell();
  spell.succeeded(0);
  spell.failed(1_000);
  spell.succeeded(1_100);
  for (const at of [1_100, 6_500, 20_000]) expect(spell.ms(at)).toBe(0);
});
