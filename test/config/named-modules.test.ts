import { namedModules } from '../../src/config/named-modules.js';

it.each(['quotas', '@acme/postern-quotas/admin', './modules/quotas.js', './a.js, quotas'])(
  'takes %s',
  (MODULES) => {
    expect(namedModules({ MODULES })).toEqual(MODULES.split(', '));
  },
);

it.each([
  '../elsewhere.js',
  'acme/../../elsewhere.js',
  './../elsewhere.js',
  '/elsewhere.js',
  '@acme/../x',
  'a,,b',
])('rejects %s, which leads elsewhere or names nothing', (MODULES) => {
  expect(() => namedModules({ MODULES })).toThrow('MODULES: must be names of packages');
});
