import { v7 as uuidv7 } from 'uuid';
import { describeInBrowser, goTo, settled, signedIn } from './browser.js';
import { type ConsoleGateway, startConsoleGateway } from './console-gateway.js';
import { checkAppearance } from './flows/appearance.js';

const UNKNOWN_ID = '00000000-0000-0000-0000-000000000000';
const ADD = `
  INSERT INTO refusal AS r (minute, team_id, key_id, code, rule_nr, provider, model, calls, last_id, last_at)
  VALUES (date_trunc('minute', now()), $1, $2, $3, 0, '', '', $4, $5, now())
  ON CONFLICT ON CONSTRAINT refusal_pkey DO UPDATE SET calls = r.calls + EXCLUDED.calls`;

describeInBrowser('rejected requests', () => {
  const gateway = {} as ConsoleGateway;
  beforeAll(async () => {
    Object.assign(gateway, await startConsoleGateway());
  });
  afterAll(() => gateway.stop());

  it.each(['requests', 'limits'])(
    'are counted on the page %s, with their reasons on demand',
    async (path) => {
      const admin = (about: string, body: object) => gateway.admin<{ id: string }>('POST', about, body);
      const { id: team } = await admin('/admin/v1/teams', { name: path });
      const { id: key } = await admin('/admin/v1/keys', { team: path, name: 'ci' });
      const { page, done } = await signedIn(gateway.url, `/${path}?team=${team}`);
      await settled(page);
      expect(await page.getByText(/rejected by the gateway/).count()).toBe(0);

      await gateway.database.query(ADD, [team, key, 'insufficient_quota', 1_203, uuidv7()]);
      await gateway.database.query(ADD, [team, key, 'model_not_allowed', 1, uuidv7()]);
      await gateway.database.query(ADD, [UNKNOWN_ID, UNKNOWN_ID, 'invalid_api_key', 5_000, uuidv7()]);
      await page.reload();
      await page.getByText(/^1,204 requests were rejected by the gateway/).waitFor();
      await page.getByRole('button', { name: 'Show the reasons' }).click();
      const rows = page.getByRole('table', { name: 'Rejected requests' }).locator('tbody tr');
      await rows.filter({ hasText: 'model_not_allowed' }).waitFor();
      const texts = (await rows.allInnerTexts()).map((text) => text.replace(/\s+/g, ' '));
      expect(texts).toEqual([
        expect.stringMatching(`^${path} / ci insufficient_quota – 1,203 `),
        expect.stringMatching(`^${path} / ci model_not_allowed – 1 `),
      ]);
      await checkAppearance(page);

      await goTo(page, `${path}?rejected=1`);
      await rows.filter({ hasText: /No valid key\s*invalid_api_key/ }).waitFor();
      await page.getByRole('button', { name: 'Hide the reasons' }).click();
      await rows.first().waitFor({ state: 'detached' });
      await done();
    },
  );
});
