import { Logger } from '@nestjs/common';
import { startTestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';

never('says at the start that Postgres does not know REPORT_TIMEZONE, and starts', async () => {
  const said = jest.spyOn(Logger.prototype, 'error');
  // Node has this name, Postgres does not.
  const postern = await startTestGateway({ REPORT_TIMEZONE: 'US/Pacific-New' });
  try {
    expect(said.mock.calls.flat()).toContainEqual(
      expect.stringMatching(/^REPORT_TIMEZONE: .*US\/Pacific-New.*pg_timezone_names/),
    );
  } finally {
    await postern.stop();
  }
});
