// `npm run test:tools`: the commands that install, build, start, lint and generate, each in a checkout of its own.
import base from './jest.config.js';

export default { ...base, testMatch: ['**/*.tools.ts'] };
