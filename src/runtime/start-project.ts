import 'reflect-metadata';
import { PosternFactory } from './postern-factory.js';
import { projectApp } from './project-app.js';

/**
 * Runs the gateway of the working directory: the project's app if its package.json names one, else Postern alone.
 *
 * @throws Error whose message names the remedy if the project's app cannot be loaded
 */
export async function startProject(): Promise<void> {
  const app = (await projectApp()) ?? (await import('../app.module.js')).AppModule;
  await PosternFactory.run(app);
}
