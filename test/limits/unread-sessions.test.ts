import { randomBytes } from 'node:crypto';
import { startTestGateway } from '../support/gateway.js';
import { never } from '../support/never.js';
import { limitedForFile, sendTo } from './limited-gateway.js';

const limited = limitedForFile();

never(
  'with ATTRIBUTION=off, calls that a limit of each session would count are rejected, and no others',
  async () => {
    const each = (mode: string) => ({
      each_session: { budgets: [{ usd: '5', period: 'session', mode, models: ['m*'] }] },
    });
    const [blocking, warning] = [await limited.issue(each('block')), await limited.issue(each('warn'))];
    const unlimited = await limited.issue({});
    const blind = await startTestGateway(
      {
        ATTRIBUTION: 'off',
        MASTER_KEY: randomBytes(32).toString('base64'),
        PROVIDER_URL: limited.provider.url,
      },
      limited.postern.database,
    );
    try {
      const headers = { 'x-gateway-session': 'one' };
      const send = (key: string, model: string, more = {}) =>
        sendTo(blind.url, key, { model, max_tokens: 10 }, '/v1/chat/completions', more);
      for (const more of [{}, headers]) {
        const reply = await send(blocking.key, 'M', more);
        expect([reply.status, reply.code]).toEqual([503, 'limits_unavailable']);
        expect(reply.error.message).toMatch(
          /reads no sessions \(ATTRIBUTION=off\)\. Ask its administrator to /,
        );
        expect((await send(blocking.key, 'other', more)).status).toBe(200);
        expect((await send(warning.key, 'm', more)).status).toBe(200);
        expect((await send(unlimited.key, 'm', more)).status).toBe(200);
      }
      await expect(blind.admin('POST', '/teams', { name: 'blind', ...each('warn') })).rejects.toThrow(
        /400.*each_session.*needs the sessions of calls: ATTRIBUTION must not be off/,
      );
      // Where sessions are read, a call that names none is not counted.
      expect((await limited.send(blocking.key, { model: 'm', max_tokens: 10 })).status).toBe(200);
    } finally {
      await blind.stop();
    }
  },
);
