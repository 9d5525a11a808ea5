// `npm run test:fuzz`: test/fuzz, and each test file with properties or random cases, in full and with a random seed.
// `npm test` runs a tenth of them with a fixed one.
import { readdirSync, readFileSync } from 'node:fs';
import base from './jest.config.js';

const test = new URL('test/', import.meta.url);
const random = /from '\S*\/(support\/property|fuzz\/random|random)\.js'/;
const files = readdirSync(test, { recursive: true }).filter(
  (path) => /\.\w+\.ts$/.test(path) && random.test(readFileSync(new URL(path, test), 'utf8')),
);

export default { ...base, testMatch: files.map((path) => `<rootDir>/test/${path}`) };
