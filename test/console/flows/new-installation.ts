import { openAfresh, SECRETS, settled, signedIn, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';
import { callWith } from '../model-provider.js';

const SECRET = 'sk-0123456789';

/** What the first administrator sees and does. */
export function newInstallation(gateway: ConsoleGateway): void {
  // every-page.browser.ts looks at them more closely.
  it('says on each page what to do next when there is nothing yet', async () => {
    const { page, done } = await signedIn(gateway.url);
    for (const path of ['', 'usage?then=model', 'requests', 'keys', 'limits', 'providers', 'prices']) {
      await openAfresh(page, path);
      await page.locator('[data-empty-state]').first().waitFor();
    }
    await done();
  });

  it('adds a provider from a preset and tests it', async () => {
    const { page, done } = await signedIn(gateway.url, '/providers');
    await page.getByText('There is no provider yet').waitFor();
    await page.getByRole('button', { name: 'Add provider' }).first().click();
    const form = page.getByRole('dialog', { name: 'Add a provider' });
    await form.getByLabel('Preset').first().click();
    await page.getByRole('option', { name: 'OpenAI', exact: true }).click();
    expect(await form.getByLabel('URL').inputValue()).toBe('https://api.openai.com');
    await form.getByLabel('Name').fill('Not A Name');
    await form.getByLabel('URL').fill(gateway.provider.url);
    await form.locator('input[type="password"]').fill(SECRET);
    SECRETS.add(SECRET);
    await form.getByRole('button', { name: 'Add and test' }).click();
    // The form keeps what was typed and says what is wrong where it is wrong.
    await form.getByText('must be 1 to 63 characters', { exact: false }).first().waitFor();
    expect(await form.getByLabel('URL').inputValue()).toBe(gateway.provider.url);
    await form.getByLabel('Name').fill('local');
    await form.getByRole('button', { name: 'Add and test' }).click();
    await page.getByRole('status').getByText('local works').waitFor();
    await page.getByText('yes: calls to /v1 go to it').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('row', { name: /local/ }).getByText('set', { exact: false }).waitFor();
    // The first attempt was rejected with 400.
    await done(/400/);
  });

  it('shows calls, error rate and p95 as SQL finds them', async () => {
    await gateway.admin('POST', '/admin/v1/teams', { name: 'pioneers' });
    const { key } = await gateway.admin<{ key: string }>('POST', '/admin/v1/keys', {
      team: 'pioneers',
      name: 'caller',
    });
    for (let call = 0; call < 3; call++) expect(await callWith(gateway.url, key, 'new-model')).toBe(200);
    const { page, done } = await signedIn(gateway.url, '/providers');
    const cells = await until(async () => {
      await page.reload();
      await settled(page);
      const texts = await page.getByRole('row', { name: /local/ }).getByRole('cell').allInnerTexts();
      return texts[3] === '3' ? texts : undefined;
    });
    const [row] = await gateway.database.query<{ calls: string }>(
      `SELECT count(*)::text AS calls FROM request_log WHERE provider = 'local'`,
    );
    expect(cells.slice(3, 5)).toEqual([row!.calls, '0%']);
    expect(cells[5]).toMatch(/ m?s$/);
    await done();
  });

  it('says beside the costs which calls they leave out, and shows an unknown cost as unknown', async () => {
    const { page, done } = await signedIn(gateway.url, '/usage?tz=UTC&by=provider&range=24h');
    await page.getByText(/^Costs leave out (1 call|\d+ calls) without a price\./).waitFor();
    const table = page.getByRole('table', { name: 'Usage by group' });
    const heads = await table.getByRole('columnheader').allInnerTexts();
    const cells = await table.getByRole('row', { name: /local/ }).getByRole('cell').allInnerTexts();
    const cellOf = (head: string) => cells[heads.findIndex((text) => text.startsWith(head))];
    expect(cellOf('Cost')).toBe('–');
    expect(Number(cellOf('No price'))).toBeGreaterThan(0);
    // No axis of $0.00: nothing is known to draw.
    await page.getByText('The costs are not known').waitFor();
    expect(await page.locator('.recharts-bar').count()).toBe(0);
    await page.getByRole('switch', { name: 'Show as table' }).first().click();
    const periods = page.getByRole('table', { name: /^Cost by provider/ });
    await periods.waitFor();
    const local = (await periods.getByRole('columnheader').allInnerTexts()).indexOf('local');
    const shown = await periods.locator(`tbody tr td:nth-child(${local + 1})`).allInnerTexts();
    expect(new Set(shown)).toEqual(new Set(['–', '$0.00']));
    await done();
  });

  it('prices a model without a price, and reprices its calls after a dry run', async () => {
    await until(async () => {
      const { data } = await gateway.admin<{ data: unknown[] }>('GET', '/admin/v1/prices/missing');
      return data.length > 0;
    });
    const { page, done } = await signedIn(gateway.url, '/prices?tz=UTC');
    await page.getByRole('heading', { name: 'A model without a price' }).waitFor();
    await page.getByRole('button', { name: 'Set its price' }).click();
    const form = page.getByRole('dialog', { name: 'Add a price' });
    expect(await form.getByLabel('Model').inputValue()).toBe('new-model');
    await form.getByLabel('Input').fill('2');
    await form.getByLabel('Output').fill('10.50');
    await form.getByRole('button', { name: 'Add price' }).click();
    const row = page.getByRole('row', { name: /new-model/ });
    await row.waitFor();
    expect((await row.getByRole('cell').allInnerTexts()).slice(1, 7)).toEqual([
      'local',
      '$2.00',
      'as input',
      '$10.50',
      'always',
      'Your own',
    ]);
    await page.getByRole('heading', { name: 'A model without a price' }).waitFor({ state: 'detached' });

    await page.getByRole('button', { name: 'Add price', exact: true }).click();
    const images = page.getByRole('dialog', { name: 'Add a price' });
    await images.getByLabel('Provider or price list').fill('local');
    await images.getByLabel('Model').fill('image-*');
    await images.getByRole('button', { name: 'Add a unit' }).click();
    // Whose price it is must be chosen first.
    await images.getByLabel('Price of unit 1').fill('40');
    expect(await images.getByRole('button', { name: 'Add price' }).isDisabled()).toBe(true);
    await images.getByRole('combobox', { name: 'Unit 1' }).click();
    await page.getByRole('option', { name: 'Images', exact: true }).click();
    await images.getByLabel('Price of unit 1').fill('much');
    await images.getByRole('button', { name: 'Add price' }).click();
    await images.getByText(/^Must be an amount in USD/).waitFor();
    await images.getByLabel('Price of unit 1').fill('40,5');
    await images.getByRole('button', { name: 'Add a unit' }).click();
    await images.getByRole('combobox', { name: 'Unit 2' }).click();
    await page.getByRole('option', { name: 'Pages', exact: true }).click();
    await images.getByLabel('Price of unit 2').fill('3');
    await checkAppearance(page);
    await images.getByRole('button', { name: 'Add price' }).click();
    await images.waitFor({ state: 'detached' });
    const stored = async () =>
      (
        await gateway.admin<{ data: { id: string; model: string; extra: object; tiers: object[] }[] }>(
          'GET',
          '/admin/v1/prices?source=custom',
        )
      ).data.find(({ model }) => model === 'image-*')!;
    expect((await stored()).extra).toEqual({ images: '40.5', pages: '3' });

    // Tiers come from elsewhere: they are shown in words, and stay when a unit changes.
    const tiers = [{ size: '1024x1536', extra: { images: '63' } }];
    await gateway.admin('PATCH', `/admin/v1/prices/${(await stored()).id}`, { tiers });
    await page.reload();
    await page.getByRole('row', { name: /image-/ }).click();
    const drawer = page.getByRole('dialog', { name: 'image-*' });
    await drawer.getByText('$40.50 per thousand').waitFor();
    await drawer.getByText('size 1024x1536: images $63.00').waitFor();
    await drawer.getByRole('button', { name: 'Edit' }).click();
    const edit = page.getByRole('dialog', { name: 'Edit the price of image-*' });
    await edit.getByText('size 1024x1536: images $63.00').waitFor();
    // In one order, whatever that of the database is.
    expect(await edit.getByRole('combobox', { name: 'Unit 1' }).inputValue()).toBe('Pages');
    await edit.getByRole('button', { name: 'Remove unit 1' }).click();
    await edit.getByRole('button', { name: 'Save' }).click();
    await edit.waitFor({ state: 'detached' });
    expect(await stored()).toMatchObject({ extra: { images: '40.5' }, tiers });
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'detached' });

    await page.getByRole('button', { name: 'Reprice', exact: true }).click();
    const dialog = page.getByRole('dialog', { name: 'Reprice calls' });
    // The days are offered after a change of a price: 30 up to today.
    await dialog.getByRole('button', { name: 'Show what would change' }).click();
    const result = dialog.locator('dl');
    await result.waitFor();
    const costOf = async () => {
      const { cost } = await gateway.database.find<{ cost: string | null }>(
        `SELECT sum(cost_usd)::text AS cost FROM request_log WHERE model = 'new-model'`,
      );
      return Number(cost ?? 0);
    };
    const confirm = dialog.getByRole('button', { name: /^Reprice \d+ calls$/ });
    // The repair in the background may have priced them already.
    if (await confirm.isVisible()) {
      await confirm.click();
      await dialog.getByRole('button', { name: 'Close' }).last().waitFor();
    }
    // 3 calls of 1,000 and 100 tokens.
    await until(async () => Math.abs((await costOf()) - 3 * 0.00305) < 1e-9);
    // The price that is no amount.
    await done(/ 400 .*\/admin\/v1\/prices$/);
  });
}
