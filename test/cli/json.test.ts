import { insertRow } from '../request-log/rows.js';
import { ADMIN_TOKEN, startTestGateway, type TestGateway } from '../support/gateway.js';
import { runHere } from './run-here.js';

/** CSI, OSC and DCS as single characters (C1), a right-to-left override, a line separator, a tag character, and text. */
const HOSTILE = 'a\u009b31m\u009d0;x\u0090q\u007f\u202e\u2028\u{e0041}é漢🙂"\\';

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startTestGateway();
  await insertRow(gateway.database, new Date(), { user_agent: HOSTILE });
});
afterAll(() => gateway.stop());

it('JSON has no character that controls a terminal, and is the same value', async () => {
  const { stdout } = await runHere(['requests', 'list', '--json'], {
    POSTERN_URL: gateway.url,
    POSTERN_ADMIN_TOKEN: ADMIN_TOKEN,
  });
  expect(stdout).not.toMatch(/[\x7f-\x9f\p{Cf}\p{Zl}\p{Zp}]/u);
  expect(stdout).toContain('é漢🙂');
  expect((JSON.parse(stdout) as { data: object[] }).data).toMatchObject([{ user_agent: HOSTILE }]);
});
