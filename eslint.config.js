import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

const NO_SLEEP =
  'Wait with eventually() or for an event. timePasses() is for tests about time itself and for the pace of a client or provider.';
const NO_SEED = 'check() and sample() of test/support/property.ts have the seed and the number of cases.';
const NO_MEASURE =
  'A busy machine decides it. Count steps (test/support/steps.ts), live bytes (live-bytes.ts) or events; compare a time with one that was read before.';
const EXECUTOR = "NewExpression[callee.name='Promise'] > .arguments";
const OF_TESTS = [
  { selector: `${EXECUTOR} > CallExpression[callee.name='setTimeout']`, message: NO_SLEEP },
  {
    selector: `${EXECUTOR} > BlockStatement > ExpressionStatement > CallExpression[callee.name='setTimeout']`,
    message: NO_SLEEP,
  },
  {
    selector: "MemberExpression[object.name='fc'][property.name=/^(assert|check|sample)$/]",
    message: NO_SEED,
  },
];
/** Processor time and memory, and a time that has passed inside of an expectation about a number. */
const MEASURED = [
  "MemberExpression[object.name='process'][property.name=/^(cpuUsage|memoryUsage|resourceUsage)$/]",
  "CallExpression[callee.property.name=/^toBe(Less|Greater)Than/] > MemberExpression > CallExpression[callee.name='expect'] BinaryExpression[operator='-'] > CallExpression[callee.object.name=/^(Date|performance)$/][callee.property.name='now']",
].map((selector) => ({ selector, message: NO_MEASURE }));

export default defineConfig(
  {
    ignores: [
      'dist/',
      '.test-build/',
      'data/',
      'coverage/',
      'node_modules/',
      'console/dist/',
      'src/client/schema.ts',
      'console/src/api/query-values.ts',
    ],
  },
  {
    files: ['src/**/*.ts', 'migrations/**/*.ts', 'test/**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }],
      '@typescript-eslint/consistent-type-imports': 'off',
      '@typescript-eslint/switch-exhaustiveness-check': 'error',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'no-empty': ['error', { allowEmptyCatch: false }],
      eqeqeq: ['error', 'smart'],
    },
  },
  {
    // The console has packages of its own, which need not be installed to lint it: rules without types.
    files: ['console/**/*.{ts,tsx}'],
    extends: [tseslint.configs.recommended],
    rules: {
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
      'no-empty': ['error', { allowEmptyCatch: false }],
      eqeqeq: ['error', 'smart'],
    },
  },
  {
    // A test waits for a state or an event, never for a fixed time.
    files: ['test/**/*.ts'],
    ignores: ['test/support/eventually.ts', 'test/support/property.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          paths: [
            { name: 'node:timers/promises', importNames: ['setTimeout', 'scheduler'], message: NO_SLEEP },
            { name: 'fast-check', importNames: ['assert', 'check', 'sample'], message: NO_SEED },
          ],
        },
      ],
      'no-restricted-syntax': ['error', ...OF_TESTS],
    },
  },
  {
    files: ['test/**/*.ts'],
    ignores: [
      'test/support/{eventually,property,live-bytes}.ts',
      // Measure, by hand and on a machine that does nothing else.
      '**/*.{faults,tools,real}.ts',
    ],
    rules: { 'no-restricted-syntax': ['error', ...OF_TESTS, ...MEASURED] },
  },
  {
    files: ['src/**/*.ts'],
    rules: { 'max-lines': ['warn', 400] },
  },
  {
    // Only config/env-source.ts reads the environment; everything else gets the typed Env.
    files: ['src/**/*.ts'],
    ignores: ['src/config/env-source.ts'],
    rules: {
      'no-restricted-properties': [
        'error',
        { object: 'process', property: 'env', message: 'Read it from Env.' },
      ],
    },
  },
);
