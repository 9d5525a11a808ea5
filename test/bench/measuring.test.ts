import { readStat, treeMicros } from '../../bench/cpu-time.mjs';
import { readOptions } from '../../bench/options.mjs';
import { readCoreList } from '../../bench/pinning.mjs';
import { boundBy } from '../../bench/scenarios/calls.mjs';

describe('readStat', () => {
  it('adds user, system and ended children, whatever the process is called', () => {
    const stat = '42 (a) b (c) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 20 10 20 0 11 0 100 200 300';
    expect(readStat(stat)).toEqual({ parent: 7, micros: 2_300_000 });
  });
});

describe('treeMicros', () => {
  it('returns nothing for a process that does not exist', () => {
    expect(treeMicros(2 ** 30)).toBeNull();
  });
});

describe('readCoreList', () => {
  it('reads ranges and single cores', () => {
    expect(readCoreList('0-2,5,7-8')).toEqual([0, 1, 2, 5, 7, 8]);
  });
});

describe('boundBy', () => {
  it('names what held calls back, if it was not the one that is measured', () => {
    expect(boundBy(0.02, 60, 10)).toBeNull();
    expect(boundBy(0.02, 20, 10)).toBe('stand-in');
    expect(boundBy(0.3, 60, 10)).toBe('load');
    // Neither is known where there is no /proc.
    expect(boundBy(null, null, null)).toBeNull();
  });
});

describe('readOptions', () => {
  it('takes everything but peers by default', () => {
    const { names, rounds } = readOptions([]);
    expect(names).toEqual(['direct', 'bare', 'nginx', 'haproxy', 'fastify', 'postern']);
    expect(rounds).toBeGreaterThanOrEqual(5);
    expect(readOptions(['--peers']).names).toEqual([...names, 'portkey', 'litellm']);
    expect(readOptions(['--only', 'postern,bare', '--rounds', '2'])).toMatchObject({
      names: ['bare', 'postern'],
      rounds: 2,
    });
  });

  it('rejects what it does not know', () => {
    for (const args of [['--only', 'apache'], ['--scenario', 'none'], ['--rounds', '0'], ['--fast']]) {
      expect(() => readOptions(args)).toThrow();
    }
  });
});
