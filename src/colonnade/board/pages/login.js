"use strict";
// The token goes by fetch, so that the browser says where the request comes from; a plain form would not.
// What comes back stays in this tab, for this address and port: a cookie would go to every port of the machine.
if (sessionStorage.getItem("session")) location.replace("/");
const form = document.getElementById("login");
const problem = document.getElementById("problem");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.textContent = "";
  const field = document.getElementById("token");
  try {
    const answer = await fetch("/login", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ token: field.value.trim() }),
    });
    if (answer.ok) {
      sessionStorage.setItem("session", (await answer.json()).session);
      location.replace("/");
      return;
    }
    problem.textContent = (await answer.json()).words;
  } catch {
    problem.textContent = "The board does not answer. Is it still running?";
  }
  field.select();
});
