// `npm run test:browser`: what builds the console and drives a browser.
import base from './jest.config.js';

// Browsers wait for little: more of them at once would only make each page slow.
export default { ...base, testMatch: ['**/*.browser.ts'], maxWorkers: 4 };
