// `npm run test:browser`: what builds the console and drives a browser.
import base from './jest.config.js';

export default { ...base, testMatch: ['**/*.browser.ts'] };
