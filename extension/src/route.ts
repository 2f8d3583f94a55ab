import type { IRouter, JupyterFrontEnd } from '@jupyterlab/application';

import { CommandIDs } from './ids';
import { parseTarget, withoutTarget } from './model/links';
import type { Views } from './view/views';

/** Open what an address asks for, once the layout has been restored, and take it out of the address. */
export function addRoute(app: JupyterFrontEnd, router: IRouter, views: Views): void {
  app.commands.addCommand(CommandIDs.route, {
    describedBy: { args: { type: 'object', properties: { search: { type: 'string' } } } },
    execute: async args => {
      const location = args as unknown as IRouter.ILocation;
      const target = parseTarget(location.search ?? '');
      // A second window gets a workspace of its own: JupyterLab resets it first, then routes the address again.
      if (target === null || new URLSearchParams(location.search).has('reset')) {
        return;
      }
      await app.restored;
      views.open(target);
      // From here on the layout restorer keeps the view; the address would reopen it after it was closed.
      router.navigate(
        location.path + withoutTarget(location.search ?? '') + (location.hash ?? ''),
        {
          skipRouting: true
        }
      );
    }
  });
  router.register({ command: CommandIDs.route, pattern: /[?&]harnesslab-lab=/ });
}
