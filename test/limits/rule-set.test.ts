import fc from 'fast-check';
import { eachOf, LIMIT_SCOPES, ownerOf } from '../../src/limit-rules/limit-rule.entity.js';
import {
  counts,
  isBudget,
  numbersOf,
  type LimitRule,
  setOf,
  type Target,
} from '../../src/limits/ledger/rule-set.js';
import { never } from '../support/never.js';
import { check } from '../support/property.js';

const PROVIDERS = ['openai', 'azure', 'bedrock'];
const MODELS = ['a', 'ab', 'abc', 'A', 'b*', ''];
const PATTERNS = ['a*', '*b', 'a*c', 'abc', '*', 'A'];

const rule: fc.Arbitrary<LimitRule> = fc
  .record({
    nr: fc.bigInt({ min: 0n, max: 2n ** 62n }).map(String),
    scope: fc.constantFrom(...LIMIT_SCOPES),
    kind: fc.constantFrom(
      ['usd', 'day'] as const,
      ['tokens', 'month'] as const,
      ['requests', 'minute'] as const,
      ['concurrent_requests', 'at_once'] as const,
    ),
    mode: fc.constantFrom('block' as const, 'warn' as const),
    providers: fc.option(fc.uniqueArray(fc.constantFrom(...PROVIDERS), { minLength: 1 })),
    models: fc.option(fc.uniqueArray(fc.constantFrom(...PATTERNS), { minLength: 1 })),
  })
  .map(({ scope, kind: [resource, period], ...others }) => ({
    ...others,
    ...{ id: others.nr, scope, owner: ownerOf(scope), ownerId: 'o', ownerName: null, each: eachOf(scope) },
    ...{ resource, period, timeZone: 'UTC', filter: '', isHot: false, amount: 1n },
    ...{ unpriced: 'reject', reservation: 'typical', removed: false },
  }));
const target: fc.Arbitrary<Target> = fc.record({
  provider: fc.constantFrom(...PROVIDERS),
  model: fc.option(fc.constantFrom(...MODELS)),
});

never(
  'names in the row of each target exactly the budgets that admitted the call and count that target',
  () => {
    check(
      fc.property(
        fc.uniqueArray(rule, { selector: ({ nr }) => nr, minLength: 1, maxLength: 12 }),
        fc.array(target, { minLength: 1, maxLength: 4 }),
        (rules, targets) => {
          const admitted = setOf(rules)!.for(targets);
          const expected = rules.filter((one) => targets.some((at) => counts(one, at)));
          expect(admitted?.rules ?? []).toEqual(expected);
          for (const at of targets) {
            const named = admitted?.named(at.provider, at.model) ?? '{}';
            const charged = rules.filter((one) => isBudget(one) && counts(one, at));
            expect(rules.filter(({ nr }) => numbersOf(named).includes(nr))).toEqual(charged);
            expect(named).toMatch(/^\{(\d+(,\d+)*)?\}$/);
          }
        },
      ),
      { numRuns: 2_000 },
    );
  },
);

it('has the same set for calls that the same rules count, so that nothing is made for each call', () => {
  check(
    fc.property(fc.array(rule, { minLength: 1, maxLength: 12 }), target, (rules, at) => {
      const set = setOf(rules)!;
      expect(set.for([at])).toBe(set.for([{ ...at }]));
      const isFiltered = rules.some(({ providers, models }) => providers !== null || models !== null);
      if (!isFiltered) expect(set.for([at])).toBe(set);
    }),
  );
});
