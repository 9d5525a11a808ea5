import { postpone } from '../../webhooks/alerts.js';
import { Receiver } from '../../webhooks/receiver.js';
import { SECRETS, signedIn, until } from '../browser.js';
import type { ConsoleGateway } from '../console-gateway.js';
import { checkAppearance } from './appearance.js';

/** Alerts, and what was delivered of them. */
export function webhookFlows(gateway: ConsoleGateway): void {
  let receiver: Receiver;
  beforeAll(async () => {
    receiver = await new Receiver().listen();
    // Its path and query are a credential.
    SECRETS.add('canary-receiver-token');
  });
  afterAll(() => receiver.close());
  const emit = (data: object) =>
    gateway.database.query(`SELECT webhook_emit('key.expiring', $1)`, [JSON.stringify(data)]);

  it('creates a webhook, shows its secret once, tests it, and shows what was delivered', async () => {
    const { page, done } = await signedIn(gateway.url, '/webhooks');
    await page.getByText('Nobody is alerted yet').waitFor();
    await page.getByRole('button', { name: 'Create webhook' }).first().click();
    const form = page.getByRole('dialog', { name: 'Create a webhook' });
    await form.getByLabel('URL').first().fill('nope');
    await form.getByRole('button', { name: 'Create webhook' }).click();
    await form.getByText('Must be a well-formed URL', { exact: false }).waitFor();
    await until(() =>
      page.evaluate<boolean>(`document.activeElement.getAttribute('aria-invalid') === 'true'`),
    );
    await form.getByLabel('URL').first().fill(receiver.url);
    await form.getByRole('checkbox', { name: /A key expires/ }).check();
    await form.getByRole('button', { name: 'Create webhook' }).click();
    const shown = page.getByRole('dialog', { name: 'Secret of the webhook' });
    const secret = (await shown.getByRole('region', { name: 'secret' }).innerText()).trim();
    expect(secret).toMatch(/^whsec_/);
    SECRETS.add(secret);
    await shown.getByRole('button', { name: 'I have copied it' }).click();

    const origin = new URL(receiver.url).origin;
    const drawer = page.getByRole('dialog', { name: `${origin}/…` });
    await drawer.getByText('Nothing was sent yet').waitFor();
    await drawer.getByRole('button', { name: 'Send test' }).click();
    await drawer.getByText('The test was accepted').waitFor();
    receiver.status = 503;
    await emit({ key: '<img src=x onerror=alert(1)>' });
    const entry = drawer.getByRole('list', { name: 'Deliveries' }).getByRole('listitem').first();
    await entry.getByText('503').waitFor();
    await postpone(gateway.database);
    await entry.getByText('The receiver rejected the event').waitFor();
    await entry.getByRole('button', { name: 'Data' }).click();
    await entry.getByText('<img src=x onerror=alert(1)>').waitFor();
    await checkAppearance(page);
    receiver.status = 204;
    receiver.received.length = 0;
    await entry.getByRole('button', { name: 'Send again' }).click();
    await entry.getByText('delivered', { exact: true }).waitFor();
    expect(receiver.received).toHaveLength(1);
    await drawer.getByLabel('State of the deliveries').first().click();
    await page.getByRole('option', { name: 'failed' }).click();
    await drawer.getByText('No delivery is failed').waitFor();
    await done(/400/);
  });

  it('changes the events and keeps the URL, which it never shows', async () => {
    const { data } = await gateway.admin<{ data: { id: string }[] }>('GET', '/admin/v1/webhooks');
    const { page, done } = await signedIn(gateway.url, `/webhooks?open=${data[0]!.id}`);
    await page.getByRole('button', { name: 'Edit', exact: true }).click();
    const form = page.getByRole('dialog', { name: 'Edit webhook' });
    expect(await form.getByRole('button', { name: 'Save' }).isDisabled()).toBe(true);
    await form.getByRole('checkbox', { name: /A sink is behind/ }).check();
    await checkAppearance(page);
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    expect(await gateway.admin('GET', `/admin/v1/webhooks/${data[0]!.id}`)).toMatchObject({
      events: ['budget.threshold', 'budget.exhausted', 'key.expiring', 'sink.lagging'],
    });
    receiver.received.length = 0;
    await page.getByRole('button', { name: 'Send test' }).click();
    await until(() => Promise.resolve(receiver.received.length === 1));
    expect(receiver.received[0]!.path).toContain('canary-receiver-token');
    await done();
  });

  it('lets a viewer read, and change nothing', async () => {
    const { token } = await gateway.admin<{ token: string }>('POST', '/admin/v1/tokens', {
      name: 'reads webhooks',
      role: 'viewer',
    });
    SECRETS.add(token);
    const { page, done } = await signedIn(gateway.url, '/webhooks', { token });
    await page.getByRole('row').nth(1).click();
    await page.getByRole('list', { name: 'Deliveries' }).getByRole('listitem').first().waitFor();
    expect(await page.getByRole('button', { name: /^(Create|Edit|Send|Remove)/ }).count()).toBe(0);
    await done();
  });

  it('removes a webhook once its host was typed', async () => {
    const { page, done } = await signedIn(gateway.url, '/webhooks');
    await page.getByRole('row').nth(1).click();
    const { host } = new URL(receiver.url);
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    await page.getByLabel(`Type ${host} to confirm`).fill(host);
    await page.getByRole('button', { name: 'Remove webhook' }).click();
    await page.getByText('Nobody is alerted yet').waitFor();
    await done();
  });
}
