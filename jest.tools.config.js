// `npm run test:tools`: the commands that install, build, start, lint and generate, each in a checkout of its own. With
// POSTERN_TEST_FULL=1 also what installs much: the site of the documentation, coding agents, and Presidio as a policy's filter (with pip).
import base from './jest.config.js';

const LARGE = ['/test/docs/site', '/test/identity/clients/', '/test/policies-by-url/presidio'];

export default {
  ...base,
  testMatch: ['**/*.tools.ts'],
  testPathIgnorePatterns: ['/node_modules/', ...(process.env.POSTERN_TEST_FULL === '1' ? [] : LARGE)],
};
