// Nest 12 is ESM-only; everything, dependencies included, is compiled to CommonJS for Jest, because native-ESM
// Jest breaks CommonJS add-ons below Node 24.9. The shipped ESM build is covered by the tests that spawn dist/.
const swc = (isModule, sourceMaps) => [
  '@swc/jest',
  {
    swcrc: false,
    isModule,
    jsc: {
      target: 'es2023',
      parser: { syntax: 'typescript', decorators: true },
      transform: { legacyDecorator: true, decoratorMetadata: true },
      keepClassNames: true,
    },
    module: { type: 'commonjs' },
    sourceMaps,
  },
];

export default {
  testEnvironment: '<rootDir>/test/support/environment.ts',
  roots: ['<rootDir>/test'],
  testMatch: ['**/*.test.ts'],
  moduleFileExtensions: ['ts', 'js', 'mjs', 'cjs', 'json', 'node'],
  transform: {
    '^.+/node_modules/.+\\.(m|c)?js$': swc('unknown', false),
    '^.+\\.(t|j|mj)s$': swc(true, 'inline'),
  },
  transformIgnorePatterns: [],
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  globalSetup: '<rootDir>/test/support/global-setup.mjs',
  globalTeardown: '<rootDir>/test/support/global-teardown.mjs',
  maxWorkers: 2,
  testTimeout: 30_000,
};
