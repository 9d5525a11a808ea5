// `npm run test:helm`: the chart, with the real helm.
import base from './jest.config.js';

export default { ...base, testMatch: ['**/helm/*.chart.ts'], maxWorkers: 1 };
