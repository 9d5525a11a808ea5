import { costedLoad } from '../support/costed-load.js';

it('costs 100,000 calls over three replicas to the last digit, two of which are killed', async () => {
  process.stdout.write(`${await costedLoad(100_000, 24, 3)}\n`);
}, 1_200_000);
