import { costedLoad } from '../support/costed-load.js';

it('costs calls over two replicas to the last digit, one of which is killed', async () => {
  expect(await costedLoad(3_000, 8, 2)).toContain('1 of 2 replicas killed; 3000 calls');
});
