"use strict";(self.rspackChunkharnesslab_labextension=self.rspackChunkharnesslab_labextension||[]).push([[232],{475(e,a,r){var o=r(601),n=r.n(o),t=r(314),s=(r.n(t))()(n());s.push([e.id,`/* Colours come from JupyterLab's variables only, so that every theme works. */

.jp-harnesslab {
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color1);
  font-family: var(--jp-ui-font-family);
  font-size: var(--jp-ui-font-size1);
}

.jp-harnesslab h2,
.jp-harnesslab h3,
.jp-harnesslab h4,
.jp-harnesslab h5,
.jp-harnesslab p {
  margin: 0 0 4px;
}

.jp-harnesslab h2 {
  font-size: var(--jp-ui-font-size2);
}

.jp-harnesslab h3 {
  font-size: var(--jp-ui-font-size1);
  font-weight: 600;
}

.jp-harnesslab h5 {
  margin-top: 6px;
  font-size: var(--jp-ui-font-size0);
  font-weight: 600;
}

.jp-harnesslab :focus-visible {
  outline: var(--jp-focus-outline-width, 2px) solid
    var(--jp-focus-outline-color, var(--jp-brand-color1));
  outline-offset: 1px;
}

.jp-harnesslab a,
.jp-harnesslab-LinkButton {
  color: var(--jp-content-link-color, var(--jp-brand-color1));
  text-decoration: underline;
}

/* The sidebar */

.jp-harnesslab-Sidebar {
  display: flex;
  flex-direction: column;
  gap: 8px;
  height: 100%;
  min-width: 240px;
  padding: 8px;
  box-sizing: border-box;
  overflow: auto;
}

.jp-harnesslab-Title {
  text-transform: none;
}

.jp-harnesslab-Header {
  display: flex;
  gap: 4px;
  align-items: center;
}

.jp-harnesslab-Header .jp-harnesslab-Select {
  flex: 1;
  min-width: 0;
}

.jp-harnesslab-Input,
.jp-harnesslab-Select {
  box-sizing: border-box;
  padding: 3px 6px;
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color0);
  border: 1px solid var(--jp-border-color0);
  border-radius: 2px;
  font: inherit;
}

.jp-harnesslab-Input::placeholder {
  color: var(--jp-ui-font-color2);
  opacity: 1;
}

.jp-harnesslab-Button,
.jp-harnesslab-IconButton {
  padding: 3px 8px;
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color2);
  border: 1px solid var(--jp-border-color0);
  border-radius: 2px;
  font: inherit;
  cursor: pointer;
}

.jp-harnesslab-Button {
  overflow-wrap: anywhere;
  text-align: start;
}

.jp-harnesslab-OneLine {
  overflow: hidden;
  max-width: 100%;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.jp-harnesslab-Button:hover,
.jp-harnesslab-IconButton:hover {
  background: var(--jp-layout-color3);
}

.jp-harnesslab-IconButton {
  display: inline-flex;
  padding: 3px;
}

.jp-harnesslab-LinkButton {
  padding: 0;
  background: none;
  border: 0;
  font: inherit;
  text-align: start;
  cursor: pointer;
  overflow-wrap: anywhere;
}

.jp-harnesslab-Buttons {
  display: flex;
  flex-wrap: wrap;
  gap: 6px;
  align-items: center;
}

.jp-harnesslab-Error {
  padding: 6px 8px;
  border-inline-start: 4px solid var(--jp-error-color1);
  background: var(--jp-layout-color2);
  overflow-wrap: anywhere;
}

.jp-harnesslab [role='note'] {
  padding: 4px 8px;
  border-inline-start: 4px solid var(--jp-warn-color1);
  overflow-wrap: anywhere;
  background: var(--jp-layout-color2);
}

.jp-harnesslab pre {
  margin: 0;
  padding: 6px;
  max-height: 240px;
  overflow: auto;
  color: var(--jp-content-font-color1);
  background: var(--jp-layout-color2);
  font-family: var(--jp-code-font-family);
  font-size: var(--jp-code-font-size);
  white-space: pre-wrap;
  overflow-wrap: anywhere;
}

.jp-harnesslab code {
  color: inherit;
  background: none;
  font-family: var(--jp-code-font-family);
  font-size: var(--jp-code-font-size);
}

.jp-harnesslab-Progress {
  display: grid;
  grid-template-columns: minmax(0, 1fr);
  gap: 4px;
  overflow-wrap: anywhere;
}

.jp-harnesslab-Progress progress {
  width: 100%;
  accent-color: var(--jp-brand-color1);
}

.jp-harnesslab-Facts {
  display: grid;
  grid-template-columns: max-content 1fr;
  gap: 2px 10px;
  margin: 4px 0;
}

.jp-harnesslab-Facts dt {
  color: var(--jp-ui-font-color2);
}

.jp-harnesslab-Facts dd {
  margin: 0;
  min-width: 0;
  overflow-wrap: anywhere;
}

.jp-harnesslab-Groups {
  display: flex;
  flex-wrap: wrap;
  gap: 8px 32px;
}

.jp-harnesslab-Score strong {
  font-size: var(--jp-ui-font-size2);
}

.jp-harnesslab-Timeline summary {
  display: flex;
  gap: 8px;
  align-items: center;
  justify-content: space-between;
  cursor: pointer;
}

.jp-harnesslab-Timeline ol {
  max-height: 190px;
  margin: 4px 0;
  padding: 0 0 0 10px;
  overflow: auto;
  list-style: none;
  border-inline-start: 2px solid var(--jp-border-color1);
}

.jp-harnesslab-TimelineItem {
  display: grid;
  grid-template-columns: 1fr auto;
  gap: 0 8px;
  padding: 3px 0;
}

.jp-harnesslab-TimelineItem a {
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.jp-harnesslab-TimelineItem .jp-harnesslab-Meta {
  grid-column: 1 / -1;
}

.jp-harnesslab-TimelineItem[aria-current] a {
  font-weight: 600;
}

.jp-harnesslab-Sparkline polyline {
  fill: none;
  stroke: var(--jp-brand-color1);
  stroke-width: 2px;
}

.jp-harnesslab-Meta {
  display: flex;
  flex-wrap: wrap;
  gap: 0 8px;
  align-items: baseline;
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
}

.jp-harnesslab-Layer,
.jp-harnesslab-State {
  padding: 0 5px;
  border: 1px solid var(--jp-border-color0);
  border-radius: 7px;
  color: var(--jp-ui-font-color1);
  font-size: var(--jp-ui-font-size0);
}

.jp-harnesslab-Refs {
  display: flex;
  flex: 1 0 320px;
  flex-direction: column;
  min-height: 320px;
}

.jp-harnesslab-Tabs {
  display: flex;
}

.jp-harnesslab-Tabs button {
  flex: 1;
  padding: 5px 4px;
  color: var(--jp-ui-font-color1);
  background: none;
  border: 0;
  border-bottom: 2px solid var(--jp-border-color2);
  font: inherit;
  cursor: pointer;
}

.jp-harnesslab-Tabs button[aria-selected='true'] {
  border-bottom-color: var(--jp-brand-color1);
  font-weight: 600;
}

.jp-harnesslab-TabPanel {
  display: flex;
  flex: 1;
  flex-direction: column;
  min-height: 0;
}

.jp-harnesslab-Filters {
  display: grid;
  grid-template-columns: 1fr 1fr;
  gap: 4px;
  padding: 6px 0;
}

.jp-harnesslab-Filters > * {
  min-width: 0;
}

.jp-harnesslab-Filters > :last-child:nth-child(odd) {
  grid-column: 1 / -1;
}

.jp-harnesslab-Count {
  color: var(--jp-ui-font-color2);
  font-size: var(--jp-ui-font-size0);
}

.jp-harnesslab-Nothing {
  padding: 12px 8px;
  border: 1px solid var(--jp-border-color2);
  color: var(--jp-ui-font-color2);
  text-align: center;
}

.jp-harnesslab-Empty {
  display: grid;
  gap: 6px;
  justify-items: start;
}

.jp-harnesslab-List {
  flex: 1;
  min-height: 120px;
  overflow: auto;
  border: 1px solid var(--jp-border-color2);
}

.jp-harnesslab-Row {
  position: absolute;
  inset-inline: 0;
  top: 0;
  display: flex;
  flex-direction: column;
  justify-content: center;
  padding: 2px 8px;
  box-sizing: border-box;
  overflow: hidden;
  border-bottom: 1px solid var(--jp-border-color2);
  cursor: pointer;
}

.jp-harnesslab-Row:hover {
  background: var(--jp-layout-color2);
}

.jp-harnesslab-List:focus-visible .jp-harnesslab-Row[aria-selected='true'] {
  box-shadow: inset 3px 0 var(--jp-focus-outline-color, var(--jp-brand-color1));
  background: var(--jp-layout-color2);
}

.jp-harnesslab-RowTitle {
  display: flex;
  gap: 8px;
  justify-content: space-between;
}

.jp-harnesslab-RowName,
.jp-harnesslab-Why {
  overflow: hidden;
  text-overflow: ellipsis;
  white-space: nowrap;
}

.jp-harnesslab-RowName,
.jp-harnesslab-Delta {
  font-weight: 600;
}

.jp-harnesslab-Row .jp-harnesslab-Meta {
  flex-wrap: nowrap;
  overflow: hidden;
  white-space: nowrap;
}

.jp-harnesslab-Row .jp-harnesslab-Meta > time {
  overflow: hidden;
  min-width: 0;
  text-overflow: ellipsis;
}

/* The main area */

.jp-harnesslab-View {
  height: 100%;
  overflow: auto;
}

.jp-harnesslab-Page {
  display: flex;
  flex-direction: column;
  gap: 14px;
  max-width: 1400px;
  padding: 12px 16px 40px;
}

.jp-harnesslab-WhyLong {
  overflow-wrap: anywhere;
}

.jp-harnesslab-File {
  margin: 0 0 10px;
  border: 1px solid var(--jp-border-color1);
}

.jp-harnesslab-File figcaption {
  display: flex;
  flex-wrap: wrap;
  gap: 0 8px;
  align-items: baseline;
  overflow-wrap: anywhere;
  padding: 4px 8px;
  background: var(--jp-layout-color2);
}

.jp-harnesslab-Merge {
  max-height: 520px;
  overflow: auto;
}

.jp-harnesslab-Merge .cm-editor {
  background: var(--jp-layout-color0);
}

.jp-harnesslab-Merge .cm-collapsedLines {
  color: var(--jp-ui-font-color1);
  background: var(--jp-layout-color2);
}

.jp-harnesslab-Compare {
  display: flex;
  flex-wrap: wrap;
  gap: 8px;
  align-items: center;
}

.jp-harnesslab-Field {
  display: inline-flex;
  gap: 8px;
  align-items: center;
  max-width: 100%;
}

.jp-harnesslab-Compare .jp-harnesslab-Input {
  width: 22em;
  max-width: 100%;
}

.jp-harnesslab-Scroll {
  overflow: auto;
  max-height: 420px;
}

.jp-harnesslab-Table {
  border-collapse: collapse;
}

.jp-harnesslab-Table caption {
  padding: 2px 0;
  font-weight: 600;
  text-align: start;
}

.jp-harnesslab-Table th,
.jp-harnesslab-Table td {
  padding: 2px 10px 2px 4px;
  border-bottom: 1px solid var(--jp-border-color2);
  text-align: start;
  vertical-align: top;
}

.jp-harnesslab-Table tbody th {
  font-weight: normal;
  overflow-wrap: anywhere;
}

.jp-harnesslab-Table tr[data-flip='gain'] > :first-child {
  box-shadow: inset 3px 0 var(--jp-success-color1);
}

.jp-harnesslab-Table tr[data-flip='loss'] > :first-child {
  box-shadow: inset 3px 0 var(--jp-error-color1);
}

.jp-harnesslab-Table tr[data-flip] > :first-child {
  padding-inline-start: 8px;
}

.jp-harnesslab-Pair {
  display: grid;
  grid-template-columns: minmax(0, 1fr) minmax(0, 1fr);
  gap: 8px;
}

.jp-harnesslab-Step {
  padding: 6px;
  border: 1px solid var(--jp-border-color2);
}

.jp-harnesslab-Step[data-empty] {
  border-style: dashed;
}

.jp-harnesslab-Step[data-invalid='true'] {
  border-inline-start: 3px solid var(--jp-error-color1);
}

/* Confirmations */

.jp-harnesslab-Plan {
  display: grid;
  gap: 8px;
  max-width: 60ch;
  background: inherit;
}

.jp-harnesslab-Plan ul {
  margin: 0;
  padding-inline-start: 18px;
}

.jp-harnesslab-Plan label,
.jp-harnesslab-Plan textarea {
  display: block;
  width: 100%;
}

@media (prefers-reduced-motion: reduce) {
  .jp-harnesslab * {
    scroll-behavior: auto;
    transition: none;
  }
}

@media (forced-colors: active) {
  .jp-harnesslab-Tabs button[aria-selected='true'] {
    border-bottom-color: Highlight;
  }

  .jp-harnesslab-List:focus-visible .jp-harnesslab-Row[aria-selected='true'] {
    outline: 2px solid Highlight;
    outline-offset: -2px;
  }
}
`,""]),r.d(a,{},{A:s})},314(e){e.exports=function(e){var a=[];return a.toString=function(){return this.map(function(a){var r="",o=void 0!==a[5];return a[4]&&(r+="@supports (".concat(a[4],") {")),a[2]&&(r+="@media ".concat(a[2]," {")),o&&(r+="@layer".concat(a[5].length>0?" ".concat(a[5]):""," {")),r+=e(a),o&&(r+="}"),a[2]&&(r+="}"),a[4]&&(r+="}"),r}).join("")},a.i=function(e,r,o,n,t){"string"==typeof e&&(e=[[null,e,void 0]]);var s={};if(o)for(var l=0;l<this.length;l++){var p=this[l][0];null!=p&&(s[p]=!0)}for(var i=0;i<e.length;i++){var d=[].concat(e[i]);o&&s[d[0]]||(void 0!==t&&(void 0===d[5]||(d[1]="@layer".concat(d[5].length>0?" ".concat(d[5]):""," {").concat(d[1],"}")),d[5]=t),r&&(d[2]&&(d[1]="@media ".concat(d[2]," {").concat(d[1],"}")),d[2]=r),n&&(d[4]?(d[1]="@supports (".concat(d[4],") {").concat(d[1],"}"),d[4]=n):d[4]="".concat(n)),a.push(d))}},a}},601(e){e.exports=function(e){return e[1]}},72(e){var a=[];function r(e){for(var r=-1,o=0;o<a.length;o++)if(a[o].identifier===e){r=o;break}return r}function o(e,o){for(var n={},t=[],s=0;s<e.length;s++){var l=e[s],p=o.base?l[0]+o.base:l[0],i=n[p]||0,d="".concat(p," ").concat(i);n[p]=i+1;var c=r(d),h={css:l[1],media:l[2],sourceMap:l[3],supports:l[4],layer:l[5]};if(-1!==c)a[c].references++,a[c].updater(h);else{var b=function(e,a){var r=a.domAPI(a);return r.update(e),function(a){a?(a.css!==e.css||a.media!==e.media||a.sourceMap!==e.sourceMap||a.supports!==e.supports||a.layer!==e.layer)&&r.update(e=a):r.remove()}}(h,o);o.byIndex=s,a.splice(s,0,{identifier:d,updater:b,references:1})}t.push(d)}return t}e.exports=function(e,n){var t=o(e=e||[],n=n||{});return function(e){e=e||[];for(var s=0;s<t.length;s++){var l=r(t[s]);a[l].references--}for(var p=o(e,n),i=0;i<t.length;i++){var d=r(t[i]);0===a[d].references&&(a[d].updater(),a.splice(d,1))}t=p}}},659(e){var a={};e.exports=function(e,r){var o=function(e){if(void 0===a[e]){var r=document.querySelector(e);if(window.HTMLIFrameElement&&r instanceof window.HTMLIFrameElement)try{r=r.contentDocument.head}catch(e){r=null}a[e]=r}return a[e]}(e);if(!o)throw Error("Couldn't find a style target. This probably means that the value for the 'insert' parameter is invalid.");o.appendChild(r)}},540(e){e.exports=function(e){var a=document.createElement("style");return e.setAttributes(a,e.attributes),e.insert(a,e.options),a}},56(e,a,r){e.exports=function(e){var a=r.nc;a&&e.setAttribute("nonce",a)}},825(e){e.exports=function(e){if("u"<typeof document)return{update:function(){},remove:function(){}};var a=e.insertStyleElement(e);return{update:function(r){var o,n,t;o="",r.supports&&(o+="@supports (".concat(r.supports,") {")),r.media&&(o+="@media ".concat(r.media," {")),(n=void 0!==r.layer)&&(o+="@layer".concat(r.layer.length>0?" ".concat(r.layer):""," {")),o+=r.css,n&&(o+="}"),r.media&&(o+="}"),r.supports&&(o+="}"),(t=r.sourceMap)&&"u">typeof btoa&&(o+="\n/*# sourceMappingURL=data:application/json;base64,".concat(btoa(unescape(encodeURIComponent(JSON.stringify(t))))," */")),e.styleTagTransform(o,a,e.options)},remove:function(){var e;null===(e=a).parentNode||e.parentNode.removeChild(e)}}}},113(e){e.exports=function(e,a){if(a.styleSheet)a.styleSheet.cssText=e;else{for(;a.firstChild;)a.removeChild(a.firstChild);a.appendChild(document.createTextNode(e))}}},579(e,a,r){var o=r(72),n=r.n(o),t=r(825),s=r.n(t),l=r(659),p=r.n(l),i=r(56),d=r.n(i),c=r(540),h=r.n(c),b=r(113),u=r.n(b),f=r(475),j={};j.styleTagTransform=u(),j.setAttributes=d(),j.insert=p().bind(null,"head"),j.domAPI=s(),j.insertStyleElement=h(),n()(f.A,j),f.A&&f.A.locals&&f.A.locals}}]);