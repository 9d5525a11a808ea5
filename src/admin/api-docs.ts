import { ForbiddenException, type INestApplication, Module, UnauthorizedException } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Express, NextFunction, Request, Response } from 'express';
import { applyApiDecorators } from './api-decorators.js';
import { SETTINGS } from '../config/config.module.js';
import type { Settings } from '../config/settings.js';
import { mayUse } from './access/role.js';
import { AdminErrorFilter } from './admin-error.filter.js';
import { AdminGuard } from './admin.guard.js';
import { PAGE_HEADERS } from './page-headers.js';

@Module({})
class DocsModule {}

const PATHS = ['/docs', '/docs-json'];
/** What the page consists of. The folder that Swagger serves holds more, such as the manifest of its package. */
const PARTS =
  /^\/docs(?:-json|\/?|\/(?:index\.html|swagger-ui-init\.js|swagger-ui(?:\.css|-bundle\.js|-standalone-preset\.js)|favicon-\d\dx\d\d\.png))(?:\?|$)/;
/** Roles besides `admin` that may read the documentation. */
const READERS = ['viewer', 'team'] as const;
/** A browser without a session can send no Bearer token by itself, only Basic. The API takes no Basic. */
const BROWSER_CHALLENGE = 'Basic realm="Postern", charset="UTF-8"';

/**
 * Serves the API documentation: `/docs` as a page, `/docs-json` as the OpenAPI document. Swagger is loaded on the first
 * request (api-decorators.ts).
 *
 * @param guarded true: requires a session of the console, or a token, as Bearer token or as the password of HTTP Basic
 */
export function serveApiDocs(app: INestApplication, guarded: boolean): void {
  if (guarded) {
    const hasConsole = app.get<Settings>(SETTINGS, { strict: false }).console === 'on';
    const guard = app.get(AdminGuard, { strict: false });
    const filter = app.get(AdminErrorFilter, { strict: false });
    app.use(PATHS, (req: Request, res: Response, next: NextFunction) => {
      guard.admit(req, res, { basic: true }).then(
        () => {
          const { role } = req.access;
          if (mayUse(role, READERS)) next();
          else filter.respond(new ForbiddenException(`The role ${role} may not read this.`), res);
        },
        (error: unknown) => {
          // Browsers send Basic credentials with every further request, where they would count instead of the session.
          const isPage = req.headers.authorization === undefined && req.accepts(['json', 'html']) === 'html';
          if (hasConsole && isPage && error instanceof UnauthorizedException) askToSignIn(res);
          else filter.respond(error, res, BROWSER_CHALLENGE);
        },
      );
    });
  }
  let docs: Promise<Express> | undefined;
  app.use(PATHS, (req: Request, res: Response, next: NextFunction) => {
    if (!PARTS.test(req.originalUrl)) return next();
    res.set(PAGE_HEADERS);
    // Express removes the mount path from req.url.
    req.url = req.originalUrl;
    (docs ??= createDocs(app)).then((serve) => serve(req, res, next), next);
  });
}

function askToSignIn(res: Response): void {
  res
    .status(401)
    .set({ ...PAGE_HEADERS, 'cache-control': 'no-store' })
    .type('html');
  res.send(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<link rel="icon" href="data:,">
<title>Postern</title>
<h1>Sign in first</h1>
<p><a href="/console">Sign in to the console</a>, then open this page again.</p>
</html>
`);
}

interface PageRequest {
  method: string;
  headers: Record<string, string>;
}

/** Runs in the browser: what the console sends with a change, for readers who are signed in there. */
function asConsole(request: PageRequest): PageRequest {
  if (request.method !== 'GET') {
    request.headers['X-Postern-Console'] = '1';
    request.headers['Content-Type'] ??= 'application/json';
  }
  return request;
}

/** Builds a separate application: a route added to a running one comes after its handler for unknown paths. */
async function createDocs(app: INestApplication): Promise<Express> {
  const swagger = await import('@nestjs/swagger');
  const { apiDocument } = await import('./api-document.js');
  applyApiDecorators(swagger);
  const docs = await NestFactory.create(DocsModule, {
    bodyParser: false,
    abortOnError: false,
  });
  swagger.SwaggerModule.setup('docs', docs, apiDocument(app), {
    jsonDocumentUrl: 'docs-json',
    raw: ['json'],
    customSiteTitle: 'Postern admin API',
    // Without the bar with the logo of Swagger.
    customCss: '.swagger-ui .topbar { display: none }',
    // A token that is entered stays in the page: nothing is stored in the browser.
    swaggerOptions: { persistAuthorization: false, requestInterceptor: asConsole },
  });
  await docs.init();
  return docs.getHttpAdapter().getInstance() as Express;
}
