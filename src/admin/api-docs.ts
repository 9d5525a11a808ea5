import type { INestApplication } from '@nestjs/common';
import { type OpenAPIObject, SwaggerModule } from '@nestjs/swagger';
import type { NextFunction, Request, Response } from 'express';
import { AdminErrorFilter } from './admin-error.filter.js';
import { AdminTokenGuard } from './admin-token.guard.js';
import { apiDocument } from './api-document.js';

/**
 * `/docs` for people, `/docs-json` for programs. The document is made when it is first asked for.
 *
 * @param guarded true: only with the admin token
 */
export function serveApiDocs(app: INestApplication, guarded: boolean): void {
  if (guarded) {
    const guard = app.get(AdminTokenGuard, { strict: false });
    const filter = app.get(AdminErrorFilter, { strict: false });
    app.use(['/docs', '/docs-json'], (req: Request, res: Response, next: NextFunction) => {
      guard.admit(req, res).then(
        () => next(),
        (error: unknown) => filter.answer(error, res),
      );
    });
  }
  let document: OpenAPIObject | undefined;
  SwaggerModule.setup('docs', app, () => (document ??= apiDocument(app)), {
    jsonDocumentUrl: 'docs-json',
    raw: ['json'],
    customSiteTitle: 'Postern admin API',
    swaggerOptions: { persistAuthorization: false },
  });
}
